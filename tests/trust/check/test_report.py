"""What is said of an adapter: for people, for programs, and for a page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders.check_evidence import SUBJECT
from tuneoff.trust.check.model import Check, CheckResult, Finding, failed, not_applicable, not_tested, out_of_reach, passed
from tuneoff.trust.check.run_checks import Report, answer, markdown, rows, to_json


def check(number: int) -> Check:
    return Check(
        id=f"family.rule-{number}", rule="so", reason="a | b", way_out="do this", reads=("one",), judge=lambda _: passed()
    )


def report(*findings: Finding) -> Report:
    results = [CheckResult(check=check(number), finding=item) for number, item in enumerate(findings)]
    return Report(subject=SUBJECT, results=results, runs=2, seconds=3.04)


@pytest.mark.parametrize(
    ("findings", "code"),
    [
        ((passed(), not_applicable("not offered")), 0),
        ((passed(), failed("wrong")), 1),
        ((passed(), not_tested("unknown")), 7),
        ((not_tested("the framework did not start"),), 7),
        ((out_of_reach("not offered"),), 7),
        ((failed("wrong"), not_tested("unknown")), 1),
        ((passed(), out_of_reach("not offered")), 0),
        ((not_applicable("not offered"),), 0),
    ],
)
def test_only_passes_and_what_does_not_apply_conform(findings: tuple[Finding, ...], code: int) -> None:
    made = report(*findings)
    assert made.exit_code == code
    assert to_json(made)["conforms"] is {0: True, 1: False, 7: None}[code]
    assert ("DOES NOT CONFORM" in answer(made)) == (code == 1)
    assert (": NOT KNOWN, nothing failed, but not all was tested (not: family.rule-" in answer(made)) == (code == 7)
    assert ("**not known**" in "".join(markdown([made]))) == (code == 7)


def test_failures_come_first_with_their_way_out_and_what_passed_is_a_line_per_family() -> None:
    assert list(
        rows(report(passed("seen"), not_applicable("no"), failed("two trials too many"), not_tested("lost"), passed()))
    ) == [
        ("family.rule-2", "FAILED", "two trials too many; do this"),
        ("family.rule-3", "NOT TESTED", "lost"),
        ("family.rule-1", "not applicable", "no"),
        ("family", "2 passed", "rule-0, rule-4"),
    ]


def test_the_last_line_counts_every_verdict() -> None:
    line = answer(report(passed(), passed(), not_applicable("no"), failed("x")))
    assert line == "plain: DOES NOT CONFORM: 2 passed, 1 failed, 1 not applicable; 2 runs, 3 s (no framework)"


def test_the_last_line_names_what_could_not_be_tested() -> None:
    line = answer(report(passed(), out_of_reach("not offered"), out_of_reach("not offered")))
    assert line.startswith("plain: CONFORMS, as far as was tested (not: family.rule-1, family.rule-2): 1 passed, 2 not tested; ")


@pytest.mark.parametrize(
    ("known", "word"), [(3, "PASSED: 2 of the 3 checks were asked for"), (2, "CONFORMS"), (None, "CONFORMS")]
)
def test_only_all_checks_together_tell_that_an_adapter_conforms(known: int | None, word: str) -> None:
    made = replace(report(passed(), not_applicable("no")), known_checks=known)
    assert answer(made) == f"plain: {word}: 1 passed, 1 not applicable; 2 runs, 3 s (no framework)"
    assert to_json(made)["is_complete"] == (known != 3)
    assert ("2 of 3 asked for" in "".join(markdown([made]))) == (known == 3)
    assert made.exit_code == 0


def test_a_failure_among_some_checks_is_enough() -> None:
    assert answer(replace(report(failed("x")), known_checks=3)).startswith("plain: DOES NOT CONFORM: 1 failed")


def test_a_page_has_every_check_and_every_text() -> None:
    lines = list(markdown([report(passed(), failed("x | y")), report(passed("seen"), passed())]))
    assert "| plain | no framework | **NO** | 1 | 1 | 0 | 0 | 2 | 3 |" in lines
    assert r"| `family.rule-1` | a \| b | **NO** | yes |" in lines
    assert "- `family.rule-1`: failed: x | y" in lines
    assert "- `family.rule-0`: passed: seen" in lines
