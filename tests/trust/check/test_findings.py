"""Checks, what they say, how they are chosen, and the report for people and for programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders.check_evidence import evidence, made
from tuneoff.adapter import Capabilities
from tuneoff.base.findings import (
    Check,
    Finding,
    Report,
    chosen,
    failed,
    judged,
    not_applicable,
    not_tested,
    out_of_reach,
    passed,
)
from tuneoff.errors import ExperimentError
from tuneoff.trust.check.checks import CHECKS
from tuneoff.trust.check.evidence import AdapterCheck, AdapterEvidence
from tuneoff.trust.check.planned_runs import DRAWS, REFUSALS, planned_runs


def check(judge: Any = lambda evidence: passed()) -> AdapterCheck:
    return Check(id="family.rule", reason="r", way_out="w", reads=("one",), judge=judge)


def test_every_check_is_listed_once_says_why_and_what_to_do_and_reads_what_is_made() -> None:
    assert len({item.id for item in CHECKS}) == len(CHECKS)
    names = {*planned_runs(Capabilities(framework="none")), DRAWS, REFUSALS}
    for item in CHECKS:
        assert all((*item.id.partition("."), item.reads, item.rule, item.reason, item.way_out))
        assert "\n" not in item.rule + item.reason + item.way_out
        assert set(item.reads) <= names


def test_checks_are_chosen_by_id_and_by_family_in_their_order() -> None:
    assert [item.id for item in chosen(CHECKS, ["budget.trials"])] == ["budget.trials"]
    assert {item.id.partition(".")[0] for item in chosen(CHECKS, ["best", "budget.trials"])} == {"best", "budget"}
    assert chosen(CHECKS) == CHECKS
    with pytest.raises(ExperimentError, match=r"^[^\n]*budget\.trials[^\n]*$"):
        chosen(CHECKS, ["budget.trial"])


def test_problems_are_a_failure_and_their_number_is_told() -> None:
    assert judged([]).verdict == "passed"
    assert judged(["a", "b", "c", "d", "e"]) == failed("a; b; c; and 2 more")


def test_what_is_missing_or_cannot_be_judged_is_no_pass() -> None:
    broken = made("one")
    object.__setattr__(broken, "stored", None)
    for missing, judge, is_good, text in (
        (not_tested("it took too long"), None, False, "it took too long"),
        (not_applicable("not offered"), None, True, "not offered"),
        (None, lambda given: passed(given.runs["one"].record.status), False, "run one has no record"),
        (None, lambda given: given.runs["two"], False, "KeyError: 'two'"),
    ):
        given = AdapterEvidence(subject=evidence().subject, runs={"one": broken}, missing={"one": missing} if missing else {})
        finding = check(judge or (lambda evidence: passed())).finding(given)
        assert (finding.is_good, finding.id, finding.reason, finding.way_out) == (is_good, "family.rule", "r", "w")
        assert finding.verdict != "passed"
        assert text in finding.text


def report(*findings: Finding, **changes: Any) -> Report:
    numbered = [
        replace(item, id=f"family.rule-{number}", reason="a | b", way_out="do this") for number, item in enumerate(findings)
    ]
    whole = Report(label="plain", findings=numbered, check_count=len(findings), about="2 runs", values={"runs": 2})
    return replace(whole, **changes)


@pytest.mark.parametrize(
    ("findings", "code", "line"),
    [
        ((passed(), not_applicable("no")), 0, "CONFORMS: 1 passed, 1 not applicable; 2 runs"),
        ((passed(), failed("wrong")), 1, "DOES NOT CONFORM: 1 passed, 1 failed; 2 runs"),
        ((failed("wrong"), not_tested("x")), 1, "DOES NOT CONFORM: 1 failed, 1 not tested; 2 runs"),
        (
            (passed(), not_tested("x")),
            7,
            "NOT KNOWN, nothing failed, but not all was tested (not: family.rule-1): 1 passed, 1 not",
        ),
        ((not_tested("x"),), 7, "NOT KNOWN, "),
        ((out_of_reach("x"),), 7, "NOT KNOWN, "),
        ((passed(), out_of_reach("x")), 0, "CONFORMS, as far as was tested (not: family.rule-1): 1 passed, 1 not tested"),
        ((not_applicable("x"),), 0, "CONFORMS: 1 not applicable"),
    ],
)
def test_the_last_line_and_the_exit_code_follow_from_all_findings(findings: tuple[Finding, ...], code: int, line: str) -> None:
    whole, part = report(*findings), report(*findings, check_count=len(findings) + 1)
    assert (whole.exit_code, part.exit_code) == (code, code)
    assert whole.answer().startswith(f"plain: {line}")
    assert whole.to_json()["conforms"] is {0: True, 1: False, 7: None}[code]
    if code == 0:
        assert part.answer().startswith(f"plain: PASSED: {len(findings)} of the {len(findings) + 1} checks were asked for")
    assert [whole.to_json()["is_complete"], part.to_json()["is_complete"]] == [True, False]


def test_a_subject_that_cannot_be_checked_has_one_line() -> None:
    broken = report(not_tested("it fails"), failure="it\nfails")
    assert (broken.exit_code, broken.text()) == (1, "plain: DOES NOT CONFORM: it fails")
    assert report(not_tested("it fails"), failure="it fails", check_count=2).text() == "plain: NOT TESTED: it fails"


def test_failures_come_first_with_their_way_out_and_what_passed_without_a_word_is_a_line_per_family() -> None:
    findings = passed("seen"), not_applicable("no"), failed("two\ntoo many"), not_tested("lost"), passed(), passed()
    assert [*report(*findings).rows()] == [
        ("family.rule-2", "FAILED", "two too many; do this"),
        ("family.rule-3", "NOT TESTED", "lost"),
        ("family.rule-1", "not applicable", "no"),
        ("family.rule-0", "passed", "seen"),
        ("family", "2 passed", "rule-4, rule-5"),
    ]
