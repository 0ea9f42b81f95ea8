"""Checks of the best trial, on records made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from builders.check_evidence import evidence, finding, made, trial
from tuneoff.trust.check.evidence import AdapterEvidence

LEVELS = (0.4, 0.9, 0.2, 0.6)
BEST, WORST = "t00001", "t00002"


def both(**changes: Any) -> AdapterEvidence:
    """Two honest runs: the same trials, the best one under max and the best one under min named."""
    trials = changes.pop("trials", [trial(number, value) for number, value in enumerate(LEVELS)])
    best_max, best_min = changes.pop("best", (BEST, WORST))
    return evidence(made("honest-max", trials, best_max, **changes), made("honest-min", trials, best_min, mode="min", **changes))


BEST_CHECKS = ("best.among-trials", "best.is-best", "best.direction", "best.value")


@pytest.mark.parametrize(
    ("best", "wrong"),
    [
        ((BEST, WORST), None),
        (("t00003", WORST), "best.is-best"),
        ((BEST, "t00003"), "best.is-best"),
        ((WORST, BEST), "best.direction"),
        ((BEST, BEST), "best.direction"),
        (("t00009", WORST), "best.among-trials"),
        ((None, WORST), "best.among-trials"),
        ((None, BEST), "best.among-trials best.direction"),
        ((WORST, "t00003"), "best.is-best"),
        (("t00003", BEST), "best.is-best"),
    ],
)
def test_a_wrong_best_trial_fails_in_one_check(best: tuple[str | None, str], wrong: str | None) -> None:
    given = both(best=best)
    found = [name for name in BEST_CHECKS if finding(name, given).verdict == "failed"]
    assert found == (wrong.split() if wrong else [])


@pytest.mark.parametrize("best", [(None, None), (BEST, None), (None, WORST), (BEST, "t00009")])
def test_where_no_trial_is_named_nothing_is_said_of_it(best: tuple[str | None, str | None]) -> None:
    for name in ("best.is-best", "best.direction", "best.value"):
        said = finding(name, both(best=best))
        assert (said.verdict, said.text) == ("not tested", "no trial was named: see best.among-trials")


def test_the_worst_trial_passes_neither_as_the_best_nor_by_its_direction() -> None:
    reversed_direction, by_chance = both(best=(WORST, BEST)), both(best=(WORST, "t00003"))
    assert "see best.direction" in finding("best.is-best", reversed_direction).text
    assert finding("best.is-best", reversed_direction).verdict == "not tested"
    assert "see best.is-best" in finding("best.direction", by_chance).text
    assert finding("best.direction", by_chance).verdict == "not tested"


def test_the_value_of_the_last_epoch_is_not_that_of_the_best() -> None:
    given = both(record_fields={"value": 0.89})
    assert finding("best.value", given).verdict == "failed"
    assert finding("best.is-best", both()).verdict == "passed"


@pytest.mark.parametrize(
    ("named", "wrong"), [("t00000", None), ("t00002", None), ("t00001", "best.ties"), ("t00003", "best.nan")]
)
def test_ties_and_nan_are_told_apart(named: str, wrong: str | None) -> None:
    trials = [trial(0, 0.7), trial(1, 0.3), trial(2, 0.7, act="calm"), trial(3, None, "failed", level=0.9, act="nan")]
    given = evidence(made("odd-values", trials, named))
    found = [name for name in ("best.ties", "best.nan") if finding(name, given).verdict != "passed"]
    assert found == ([wrong] if wrong else [])


def test_a_pruned_trial_is_no_best_one() -> None:
    trials = [trial(0, 0.4), trial(1, 0.9, "pruned")]
    assert finding("best.completed-only", evidence(made("scripted", trials, "t00001"))).verdict == "failed"
    assert finding("best.completed-only", evidence(made("scripted", trials, "t00000"))).verdict == "passed"
