"""Outcomes by hand: each class is what its rule says, and what a run says that is not true is found."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tuneoff.experiment.spec import Objective
from tuneoff.judge.faults import Class
from tuneoff.trust.faultmatrix.classify import Claim, SeenRun, Truth, classify

# three configurations, three epochs each; number 1 is the best and meets the fault
LOST = Truth(
    values=((0.1, 0.2, 0.3), (0.5, 0.7, 0.8), (0.2, 0.3, 0.4)),
    objective=Objective(metric="accuracy", mode="max"),
    faulty=1,
    is_sound=False,
)
SOUND = replace(LOST, is_sound=True)
FIRST, THIRD = Claim(index=0, state="completed", value=0.3), Claim(index=2, state="completed", value=0.4)
FAILED = Claim(index=1, state="failed", text="failed: boom")


def seen(*claims: Claim, best: tuple[int, float | None] | None, **changes: object) -> SeenRun:
    return replace(SeenRun(claims=claims, best=best), **changes)  # type: ignore[arg-type]


def completed(value: float | None) -> Claim:
    return Claim(index=1, state="completed", value=value)


def test_all_results_are_right() -> None:
    assert classify(SOUND, seen(FIRST, completed(0.8), THIRD, best=(1, 0.8))).kind is Class.RECOVERED


def test_one_trial_is_lost_and_the_best_of_the_others_is_named() -> None:
    outcome = classify(LOST, seen(FIRST, FAILED, THIRD, best=(2, 0.4)))
    assert (outcome.kind, outcome.reason) == (Class.LOST, "1 trial: failed: boom")


def test_a_sound_trial_that_is_lost_too_is_lost() -> None:
    other = Claim(index=2, state="failed", text="actor died")
    outcome = classify(LOST, seen(FIRST, FAILED, other, best=(0, 0.3)))
    assert (outcome.kind, outcome.reason) == (Class.LOST, "2 trials: failed: boom")


def test_a_trial_that_stays_running_for_ever_is_lost() -> None:
    outcome = classify(SOUND, seen(FIRST, Claim(index=1, state="unfinished"), THIRD, best=(2, 0.4)))
    assert outcome.kind is Class.LOST


def test_a_second_try_that_went_well_counts() -> None:
    assert classify(SOUND, seen(FIRST, FAILED, THIRD, completed(0.8), best=(1, 0.8))).kind is Class.RECOVERED


def test_what_is_not_finite_and_kept_as_such_is_lost_unless_it_is_named_best() -> None:
    for value in (math.nan, math.inf):
        assert classify(LOST, seen(FIRST, completed(value), THIRD, best=(2, 0.4))).kind is Class.LOST
        outcome = classify(LOST, seen(FIRST, completed(value), THIRD, best=(1, value)))
        assert (outcome.kind, outcome.reason) == (Class.WRONG, f"the faulty trial is named best, with {value}")


def test_a_value_of_an_epoch_before_the_fault_is_lost_but_may_not_be_best() -> None:
    outcome = classify(LOST, seen(FIRST, completed(0.5), THIRD, best=(2, 0.4)))
    assert (outcome.kind, outcome.reason) == (Class.LOST, "1 trial: completed, with 0.5 of an epoch before the fault")
    assert classify(LOST, seen(FIRST, completed(0.5), THIRD, best=(1, 0.5))).kind is Class.WRONG


@pytest.mark.parametrize(
    ("claims", "best", "reason"),
    [
        ((FIRST, completed(0.9), THIRD), (1, 0.9), "configuration 1 counts as complete with 0.9, but its result is 0.8"),
        ((FIRST, completed(0.7), THIRD), (1, 0.7), "configuration 1 counts as complete with 0.7, but its result is 0.8"),
        ((FIRST, completed(0.8), THIRD), (2, 0.4), "configuration 2 is named best, but 1 is"),
        ((FIRST, completed(0.8), THIRD), (1, 0.7), "the best trial has 0.7, but its result is 0.8"),
        ((FIRST, completed(0.8), THIRD), None, "it names no best trial"),
        ((FIRST, completed(0.8)), (1, 0.8), "it ended well, but says nothing of configuration 2"),
    ],
)
def test_what_is_not_true_is_silently_wrong(
    claims: tuple[Claim, ...], best: tuple[int, float | None] | None, reason: str
) -> None:
    outcome = classify(SOUND, seen(*claims, best=best))
    assert (outcome.kind, outcome.reason) == (Class.WRONG, reason)


def test_a_faulty_trial_with_a_value_that_it_never_had_is_silently_wrong() -> None:
    outcome = classify(LOST, seen(FIRST, completed(0.0), THIRD, best=(2, 0.4)))
    assert (outcome.kind, outcome.reason) == (Class.WRONG, "the faulty trial counts as complete with 0, which it never reached")


def test_what_is_not_true_and_said_so_is_not_silent() -> None:
    outcome = classify(SOUND, seen(FIRST, completed(0.8), THIRD, best=(2, 0.4), notices=("best_differs",)))
    assert outcome.kind is Class.LOST
    assert "best_differs" in outcome.reason


def test_an_error_at_the_end_is_an_aborted_run_whatever_it_says() -> None:
    outcome = classify(SOUND, seen(FIRST, completed(0.9), THIRD, best=(1, 0.9), failure="exit code 1: boom"))
    assert (outcome.kind, outcome.reason) == (Class.ABORTED, "exit code 1: boom")


def test_an_end_before_all_was_run_is_an_aborted_run() -> None:
    outcome = classify(LOST, seen(FIRST, FAILED, Claim(index=2, state="unfinished"), best=(0, 0.3)))
    assert (outcome.kind, outcome.reason) == (
        Class.ABORTED,
        "it ended as if all were well, but did not run configuration 2",
    )


def test_no_end_is_a_hung_run_whatever_was_said_before() -> None:
    outcome = classify(SOUND, seen(FIRST, completed(0.8), THIRD, best=(1, 0.8), ended=False, words="waiting"))
    assert (outcome.kind, outcome.reason) == (Class.HUNG, "its last line: waiting")


def test_the_least_value_is_best_where_it_is_minimized() -> None:
    truth = replace(SOUND, objective=Objective(metric="loss", mode="min"))
    assert classify(truth, seen(FIRST, completed(0.8), THIRD, best=(0, 0.3))).kind is Class.RECOVERED
    assert classify(truth, seen(FIRST, completed(0.8), THIRD, best=(1, 0.8))).kind is Class.WRONG
