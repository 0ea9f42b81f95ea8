"""A model-based sampler whose budget ends within its random start is flagged, in every adapter that has Optuna's samplers."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from contract.runs import experiment
from tuneoff.experiment.spec import Budget, Strategy
from tuneoff_adapters.optuna_samplers import STARTUP_TRIALS, flag_unused_model


def flags(sampler: str, trials: int, **options: Any) -> list[str]:
    found: list[str] = []
    spec = replace(
        experiment("null"), sampler=Strategy(name=sampler, options=options), budget=Budget(trials=trials, epochs_per_trial=1)
    )
    context = SimpleNamespace(spec=SimpleNamespace(experiment=spec), flag=lambda name, text: found.append(name))
    flag_unused_model(context)  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(
    ("sampler", "trials", "options", "expected"),
    [
        ("tpe", 10, {}, ["sampler_without_model"]),
        ("tpe", 11, {}, []),
        ("default", 6, {}, ["sampler_without_model"]),
        ("gp", 6, {"n_startup_trials": 5}, []),
        ("random", 1, {}, []),
    ],
)
def test_a_budget_within_the_random_start_is_flagged(
    sampler: str, trials: int, options: dict[str, Any], expected: list[str]
) -> None:
    assert flags(sampler, trials, **options) == expected


def test_the_start_up_numbers_are_optuna_s_own_defaults() -> None:
    samplers = pytest.importorskip("optuna", reason="optuna is not installed").samplers
    assert samplers.TPESampler()._n_startup_trials == STARTUP_TRIALS["tpe"] == STARTUP_TRIALS["default"]
    assert samplers.GPSampler()._n_startup_trials == STARTUP_TRIALS["gp"]
