"""Options, samplers and the search space of Optuna."""

from __future__ import annotations

from inspect import signature
from types import SimpleNamespace
from typing import Any

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from builders.spaces import SPACE, spaces, units
from builders.specs import make_experiment, toy_spec
from tuneoff.base.identity import canonical_json
from tuneoff.base.space import Categorical, Float, SearchSpace
from tuneoff.experiment.spec import Strategy
from tuneoff.experiment.translation import SpaceTranslation
from tuneoff.record.run_context import RunContext
from tuneoff_adapters.katib.offers import STARTUP_TRIALS as OF_KATIB
from tuneoff_adapters.optuna.adapter import OptunaAdapter
from tuneoff_adapters.optuna.search import distributions
from tuneoff_adapters.optuna_samplers import STARTUP_TRIALS, flag_unused_model

ONE_ORDERED = SearchSpace({"x": Float(low=0.0, high=1.0), "kind": Categorical(choices=("a", "b"))})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sampler": "tpe", "sampler_options": {"n_startup_trials": 0}}, ["n_startup_trials", ">= 1", "0"]),
        ({"sampler": "cmaes", "space": ONE_ORDERED}, ["'cmaes'", "at least 2", "has 1"]),
        ({"platform": "kubernetes", "options": {"image": "any"}}, ["option `storage`", "postgresql", "None"]),
        ({"platform": "kubernetes", "options": {"image": "any", "storage": "sqlite"}}, ["`storage`", "'sqlite'"]),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_line(changes: dict[str, Any], words: list[str]) -> None:
    reason = OptunaAdapter.refuse(toy_spec("optuna", **changes))
    assert reason is not None
    assert "\n" not in reason
    assert all(word in reason for word in words), reason


@pytest.mark.parametrize(
    ("sampler", "trials", "options", "startup", "expected"),
    [
        ("tpe", 10, {}, STARTUP_TRIALS, ["sampler_without_model"]),
        ("tpe", 11, {}, STARTUP_TRIALS, []),
        ("tpe", 12, {}, STARTUP_TRIALS, ["sampler_without_model"]),  # of which all are given, as below
        ("tpe", 13, {}, STARTUP_TRIALS, []),
        ("gp", 6, {"n_startup_trials": 5}, STARTUP_TRIALS, []),
        ("multivariate-tpe", 10, {}, OF_KATIB, ["sampler_without_model"]),
        ("multivariate-tpe", 11, {}, OF_KATIB, []),
        ("random", 2, {}, OF_KATIB, []),
    ],
)
def test_a_budget_within_the_random_start_is_flagged(
    sampler: str, trials: int, options: dict[str, Any], startup: dict[str, int], expected: list[str]
) -> None:
    found: list[str] = []
    given = tuple({"learning_rate": 0.01} for _ in range(12 if trials >= 12 else 0))
    spec = make_experiment(sampler=Strategy(name=sampler, options=options), trials=trials, configurations=given)
    context: Any = SimpleNamespace(spec=SimpleNamespace(experiment=spec), flag=lambda name, text: found.append(name))
    context.flag_unused_model = lambda startup_trials: RunContext.flag_unused_model(context, startup_trials)
    flag_unused_model(context, startup)
    assert found == expected


def test_the_start_up_numbers_are_optuna_s_own_defaults() -> None:
    samplers = pytest.importorskip("optuna", reason="optuna is not installed").samplers
    assert samplers.TPESampler()._n_startup_trials == STARTUP_TRIALS["tpe"] == STARTUP_TRIALS["default"]
    rustuna = pytest.importorskip("rustuna", reason="rustuna is not installed").samplers
    assert signature(rustuna.TPESampler).parameters["n_startup_trials"].default == STARTUP_TRIALS["tpe"]
    assert samplers.GPSampler()._n_startup_trials == STARTUP_TRIALS["gp"]


@settings(max_examples=50, deadline=None)
@given(spaces(), st.data())
def test_an_enqueued_configuration_survives_the_way_through_optuna(space: SearchSpace, data: st.DataObject) -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    translation = SpaceTranslation(space)
    configuration = space.from_units(data.draw(units(space)))
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.enqueue_trial(dict(translation.encode(configuration)))
    trial = study.ask(distributions(translation.native))
    assert canonical_json(translation.decode(trial.params)) == canonical_json(configuration)


def test_each_native_kind_has_its_distribution() -> None:
    assert distributions(SpaceTranslation(SPACE).native) == {
        "linear": FloatDistribution(-1.0, 3.0),
        "log": FloatDistribution(1e-5, 1e-1, log=True),
        "log_integer": FloatDistribution(0.5, 8.5, log=True),
        "integer": IntDistribution(0, 3),
        "float_step": IntDistribution(0, 4),
        "unordered": CategoricalDistribution((0, 1, 2, 3)),
        "ordered": IntDistribution(0, 3),
    }
