"""A model-based sampler whose budget ends within its random start is flagged, in every adapter that has Optuna's samplers."""

from __future__ import annotations

from inspect import signature
from types import SimpleNamespace
from typing import Any

import pytest

from builders.specs import make_experiment
from tuneoff.experiment.spec import Strategy
from tuneoff_adapters.katib.offers import STARTUP_TRIALS as OF_KATIB
from tuneoff_adapters.optuna_samplers import STARTUP_TRIALS, flag_unused_model


@pytest.mark.parametrize(
    ("sampler", "trials", "options", "startup", "expected"),
    [
        ("tpe", 10, {}, STARTUP_TRIALS, ["sampler_without_model"]),
        ("tpe", 11, {}, STARTUP_TRIALS, []),
        ("default", 6, {}, STARTUP_TRIALS, ["sampler_without_model"]),
        ("gp", 6, {"n_startup_trials": 5}, STARTUP_TRIALS, []),
        ("random", 1, {}, STARTUP_TRIALS, []),
        ("multivariate-tpe", 10, {}, OF_KATIB, ["sampler_without_model"]),
        ("multivariate-tpe", 11, {}, OF_KATIB, []),
        ("multivariate-tpe", 6, {"n_startup_trials": 5}, OF_KATIB, []),
        ("random", 2, {}, OF_KATIB, []),
    ],
)
def test_a_budget_within_the_random_start_is_flagged(
    sampler: str, trials: int, options: dict[str, Any], startup: dict[str, int], expected: list[str]
) -> None:
    found: list[str] = []
    spec = make_experiment(sampler=Strategy(name=sampler, options=options), trials=trials)
    context = SimpleNamespace(spec=SimpleNamespace(experiment=spec), flag=lambda name, text: found.append(name))
    flag_unused_model(context, startup)  # type: ignore[arg-type]
    assert found == expected


def test_the_start_up_numbers_are_optuna_s_own_defaults() -> None:
    samplers = pytest.importorskip("optuna", reason="optuna is not installed").samplers
    assert samplers.TPESampler()._n_startup_trials == STARTUP_TRIALS["tpe"] == STARTUP_TRIALS["default"]
    rustuna = pytest.importorskip("rustuna", reason="rustuna is not installed").samplers
    assert signature(rustuna.TPESampler).parameters["n_startup_trials"].default == STARTUP_TRIALS["tpe"]
    assert samplers.GPSampler()._n_startup_trials == STARTUP_TRIALS["gp"]
