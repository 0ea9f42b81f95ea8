"""Katib's optimal trial against the trials' own events."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.katib.katib_objects import EXPERIMENT, RUNNING, Object, experiment
from tuneoff.experiment.spec import Objective
from tuneoff_adapters.katib.results import Optimum, Outcome, optimum

LOSS = Objective(metric="loss", mode="min")


def outcome(suffix: str, value: float | None, is_complete: bool = True) -> Outcome:
    return Outcome(
        trial_id=suffix,
        framework_id=f"{EXPERIMENT}-{suffix}",
        configuration={"x": value},
        is_complete=is_complete,
        value=value,
    )


def with_optimum(suffix: str | None, **values: str) -> Object:
    told: dict[str, Any] = {"observation": {}}
    if suffix is not None:
        told = {"bestTrialName": f"{EXPERIMENT}-{suffix}"}
        told["observation"] = {"metrics": [{"name": "other", "min": "0"}, {"name": "objective", **values}]}
    return experiment(RUNNING, currentOptimalTrial=told)


OUTCOMES = [outcome("a", 0.5), outcome("b", 0.25), outcome("c", 0.125, is_complete=False)]


def best(thing: Object | None, mode: str = "min") -> Optimum | None:
    return optimum(thing, OUTCOMES, Objective(metric="loss", mode=mode), "objective")  # type: ignore[arg-type]


def test_katib_s_own_optimum_is_taken_with_its_value() -> None:
    found = best(with_optimum("b", latest="0.3", min="0.25", max="9"))
    assert found is not None
    assert (found.best.trial_id, found.best.value, found.note) == ("b", 0.25, None)


def test_the_value_is_of_the_objective_s_direction() -> None:
    found = best(with_optimum("a", latest="0.3", min="0.25", max="0.5"), mode="max")
    assert found is not None
    assert found.best.value == 0.5


def test_katib_s_answer_stands_where_the_events_say_otherwise() -> None:
    found = best(with_optimum("a", min="0.5"))
    assert found is not None
    assert (found.best.trial_id, found.note) == ("a", None)


@pytest.mark.parametrize("suffix", ["c", "unknown"])
def test_an_optimum_that_did_not_complete_is_replaced_and_told(suffix: str) -> None:
    found = best(with_optimum(suffix, min="0.125"))
    assert found is not None
    assert (found.best.trial_id, found.best.value) == ("b", None)
    assert f"{EXPERIMENT}-{suffix}" in (found.note or "")


def test_without_an_optimum_of_katib_s_the_best_completed_trial_is_taken() -> None:
    found = best(with_optimum(None))
    assert found is not None
    assert found.best.trial_id == "b"
    assert found.note == "Katib names no optimal trial; the best trial that completed is 'b'"


def test_a_value_that_is_unavailable_is_none() -> None:
    found = best(with_optimum("b", min="unavailable"))
    assert found is not None
    assert found.best.value is None


def test_no_completed_trial_gives_no_best() -> None:
    assert optimum(with_optimum("c"), [OUTCOMES[2]], LOSS, "objective") is None
    assert optimum(None, [], LOSS, "objective") is None
