"""Outcomes by hand: each class is what its rule says, and what a run says that is not true is found."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tuneoff.experiment.spec import Objective
from tuneoff.judge.fault_results import FaultOutcome
from tuneoff_faults.classify import SeenRun, Truth, classify
from tuneoff_faults.plain import Claim

# three configurations, three epochs each; number 1 is the best and meets the fault
LOST = Truth(
    values=((0.1, 0.2, 0.3), (0.5, 0.7, 0.8), (0.2, 0.3, 0.4)),
    objective=Objective(metric="accuracy", mode="max"),
    faulty=1,
    is_sound=False,
)
SOUND = replace(LOST, is_sound=True)
MINIMIZED = replace(SOUND, objective=Objective(metric="loss", mode="min"))
FIRST, THIRD = Claim(index=0, state="completed", value=0.3), Claim(index=2, state="completed", value=0.4)
FAILED = Claim(index=1, state="failed", text="failed: boom")


def seen(*claims: Claim, best: tuple[int, float | None] | None, **changes: object) -> SeenRun:
    return replace(SeenRun(claims=claims, best=best), **changes)  # type: ignore[arg-type]


def completed(value: float | None) -> Claim:
    return Claim(index=1, state="completed", value=value)


ALL_RIGHT = "every configuration has its right result"
OTHER, UNFINISHED = Claim(index=2, state="failed", text="actor died"), Claim(index=1, state="unfinished")
BEFORE = completed(0.5)  # a value of an epoch before the fault
SECOND = completed(0.8)  # its right result
OUTCOMES: dict[str, tuple[Truth, SeenRun, FaultOutcome, str]] = {
    "all results are right": (SOUND, seen(FIRST, SECOND, THIRD, best=(1, 0.8)), FaultOutcome.RECOVERED, ALL_RIGHT),
    "a second try went well": (SOUND, seen(FIRST, FAILED, THIRD, SECOND, best=(1, 0.8)), FaultOutcome.RECOVERED, ALL_RIGHT),
    "the least value is best": (MINIMIZED, seen(FIRST, SECOND, THIRD, best=(0, 0.3)), FaultOutcome.RECOVERED, ALL_RIGHT),
    "a trial is lost": (LOST, seen(FIRST, FAILED, THIRD, best=(2, 0.4)), FaultOutcome.LOST, "1 trial: failed: boom"),
    "a sound one too": (LOST, seen(FIRST, FAILED, OTHER, best=(0, 0.3)), FaultOutcome.LOST, "2 trials: failed: boom"),
    "one stays running": (SOUND, seen(FIRST, UNFINISHED, THIRD, best=(2, 0.4)), FaultOutcome.LOST, "1 trial: unfinished"),
    "not finite": (
        LOST,
        seen(FIRST, completed(math.nan), THIRD, best=(2, 0.4)),
        FaultOutcome.LOST,
        "1 trial: completed, with nan",
    ),
    "infinite": (LOST, seen(FIRST, completed(math.inf), THIRD, best=(2, 0.4)), FaultOutcome.LOST, "1 trial: completed, with inf"),
    "a value from before the fault": (
        LOST,
        seen(FIRST, BEFORE, THIRD, best=(2, 0.4)),
        FaultOutcome.LOST,
        "1 trial: completed, with 0.5 of an epoch before the fault",
    ),
    "what is not true is said to be so, and not silent": (
        SOUND,
        seen(FIRST, SECOND, THIRD, best=(2, 0.4), notices=("best_differs",)),
        FaultOutcome.LOST,
        "it says so itself (best_differs): configuration 2 is named best, but 1 is",
    ),
    "an error at the end, whatever it says": (
        SOUND,
        seen(FIRST, completed(0.9), THIRD, best=(1, 0.9), failure="exit code 1: boom"),
        FaultOutcome.ABORTED,
        "exit code 1: boom",
    ),
    "an end before all was run": (
        LOST,
        seen(FIRST, FAILED, Claim(index=2, state="unfinished"), best=(0, 0.3)),
        FaultOutcome.ABORTED,
        "it ended as if all were well, but did not run configuration 2",
    ),
    "no end, whatever was said before": (
        SOUND,
        seen(FIRST, SECOND, THIRD, best=(1, 0.8), ended=False, words="waiting"),
        FaultOutcome.HUNG,
        "its last line: waiting",
    ),
}


@pytest.mark.parametrize(("truth", "run", "kind", "reason"), OUTCOMES.values(), ids=OUTCOMES)
def test_a_run_has_the_class_and_the_reason_of_its_rule(truth: Truth, run: SeenRun, kind: FaultOutcome, reason: str) -> None:
    assert classify(truth, run) == (kind, reason)


@pytest.mark.parametrize(
    ("truth", "claims", "best", "reason"),
    [
        (SOUND, (FIRST, completed(0.9), THIRD), (1, 0.9), "configuration 1 counts as complete with 0.9, but its result is 0.8"),
        (SOUND, (FIRST, completed(0.7), THIRD), (1, 0.7), "configuration 1 counts as complete with 0.7, but its result is 0.8"),
        (SOUND, (FIRST, SECOND, THIRD), (2, 0.4), "configuration 2 is named best, but 1 is"),
        (SOUND, (FIRST, SECOND, THIRD), (1, 0.7), "the best trial has 0.7, but its result is 0.8"),
        (SOUND, (FIRST, SECOND, THIRD), None, "it names no best trial"),
        (SOUND, (FIRST, SECOND), (1, 0.8), "it ended well, but does not mention configuration 2"),
        (MINIMIZED, (FIRST, SECOND, THIRD), (1, 0.8), "configuration 1 is named best, but 0 is"),
        (LOST, (FIRST, completed(0.0), THIRD), (2, 0.4), "the faulty trial counts as complete with 0, which it never reached"),
        (LOST, (FIRST, BEFORE, THIRD), (1, 0.5), "the faulty trial is named best, with 0.5"),
        (LOST, (FIRST, completed(math.nan), THIRD), (1, math.nan), "the faulty trial is named best, with nan"),
        (LOST, (FIRST, completed(math.inf), THIRD), (1, math.inf), "the faulty trial is named best, with inf"),
    ],
)
def test_what_is_not_true_is_silently_wrong(
    truth: Truth, claims: tuple[Claim, ...], best: tuple[int, float | None] | None, reason: str
) -> None:
    assert classify(truth, seen(*claims, best=best)) == (FaultOutcome.WRONG, reason)
