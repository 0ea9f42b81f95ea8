"""Checks, what they say, and how they are chosen."""

from __future__ import annotations

import pytest

from builders.check_evidence import evidence, made
from tuneoff.capabilities import Capabilities
from tuneoff.errors import ExperimentError
from tuneoff.trust.check.checks import CHECKS
from tuneoff.trust.check.evidence import AdapterEvidence
from tuneoff.trust.check.model import Check, Finding, chosen, judge_all, judged, not_applicable, not_tested, passed
from tuneoff.trust.check.planned_runs import DRAWS, REFUSALS, planned_runs


def check(judge: object = None, **fields: object) -> Check:
    values = {"id": "family.rule", "rule": "x", "reason": "r", "way_out": "w", "reads": ("one",)}
    return Check(**{**values, "judge": judge or (lambda _: passed()), **fields})  # type: ignore[arg-type]


def test_every_check_is_listed_once_and_says_why_and_what_to_do() -> None:
    assert len({item.id for item in CHECKS}) == len(CHECKS)
    for item in CHECKS:
        assert all(item.id.partition("."))
        assert item.reads
        assert item.rule
        assert item.reason
        assert item.way_out
        assert "\n" not in item.rule + item.reason + item.way_out


def test_every_check_reads_what_is_made() -> None:
    known = {*planned_runs(Capabilities(framework="none")), DRAWS, REFUSALS}
    assert {name for item in CHECKS for name in item.reads} <= known


def test_checks_are_chosen_by_id_and_by_family_in_their_order() -> None:
    assert [item.id for item in chosen(CHECKS, ["budget.trials"])] == ["budget.trials"]
    assert {item.id.partition(".")[0] for item in chosen(CHECKS, ["best", "budget.trials"])} == {"best", "budget"}
    assert chosen(CHECKS) == CHECKS


def test_an_unknown_check_is_one_line_with_the_nearest() -> None:
    with pytest.raises(ExperimentError, match=r"budget\.trials") as caught:
        chosen(CHECKS, ["budget.trial"])
    assert "\n" not in str(caught.value)


def test_problems_are_a_failure_and_their_number_is_told() -> None:
    assert judged([]).verdict == "passed"
    assert judged(["a", "b", "c", "d", "e"]) == Finding(verdict="failed", text="a; b; c; and 2 more")


def test_what_was_not_made_is_told_and_is_no_pass() -> None:
    given = AdapterEvidence(subject=evidence().subject, missing={"one": not_tested("it took too long")})
    assert check().finding(given) == Finding(verdict="not tested", text="it took too long")
    given = AdapterEvidence(subject=evidence().subject, missing={"one": not_applicable("not offered")})
    assert check().finding(given).is_good


def test_a_run_without_a_record_is_no_pass() -> None:
    broken = made("one")
    object.__setattr__(broken, "stored", None)
    found = check(lambda given: passed(given.record("one").status)).finding(evidence(broken))
    assert found.verdict == "not tested"
    assert not found.is_good


def test_a_check_that_fails_itself_is_no_pass() -> None:
    def judge(given: AdapterEvidence) -> Finding:
        raise KeyError("x")

    (result,) = judge_all([check(judge)], evidence())
    assert (result.finding.verdict, result.finding.is_good) == ("not tested", False)
    assert "KeyError" in result.finding.text
