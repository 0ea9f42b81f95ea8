"""Katib's optimal trial against the trials' own events."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.katib.katib_objects import EXPERIMENT, RUNNING, Object, experiment
from tuneoff.experiment.spec import Objective
from tuneoff_adapters.katib.results import Outcome, optimum

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


NONE_NAMED = "Katib names no optimal trial; the best trial that completed is 'b'"


@pytest.mark.parametrize(
    ("thing", "mode", "trial", "value", "note"),
    [
        pytest.param(with_optimum("b", latest="0.3", min="0.25", max="9"), "min", "b", 0.25, None, id="Katib's own"),
        pytest.param(with_optimum("a", latest="0.3", min="0.25", max="0.5"), "max", "a", 0.5, None, id="the other direction"),
        pytest.param(with_optimum("a", min="0.5"), "min", "a", 0.5, None, id="the events say otherwise"),
        pytest.param(with_optimum("b", min="unavailable"), "min", "b", None, None, id="no value"),
        pytest.param(with_optimum("c", min="0.125"), "min", "b", None, f"{EXPERIMENT}-c", id="did not complete"),
        pytest.param(with_optimum("unknown", min="0.125"), "min", "b", None, f"{EXPERIMENT}-unknown", id="unknown"),
        pytest.param(with_optimum(None), "min", "b", None, NONE_NAMED, id="none is named"),
    ],
)
def test_katib_s_own_optimum_is_taken_if_it_completed(
    thing: Object, mode: str, trial: str, value: float | None, note: str | None
) -> None:
    found = optimum(thing, OUTCOMES, Objective(metric="loss", mode=mode), "objective")  # type: ignore[arg-type]
    assert found is not None
    assert (found.best.trial_id, found.best.value) == (trial, value)
    assert found.note is None if note is None else note in (found.note or "")


def test_no_completed_trial_gives_no_best() -> None:
    assert optimum(with_optimum("c"), [OUTCOMES[2]], LOSS, "objective") is None
    assert optimum(None, [], LOSS, "objective") is None
