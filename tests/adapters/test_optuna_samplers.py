"""Samplers: seeds, given lists, and what the model-based ones propose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import optuna
import pytest

from adapters.lifecycle_run import SPACE
from adapters.optuna_specs import memory_study, plan_of, run_spec
from tuneoff.errors import StepError, UnsupportedError
from tuneoff.experiment.sampling import grid_order, sample_distinct
from tuneoff.experiment.space import Categorical, SearchSpace, stepped
from tuneoff_adapters.optuna.distributions import distributions
from tuneoff_adapters.optuna.offers import CAPABILITIES
from tuneoff_adapters.optuna.plan import StudyPlan
from tuneoff_adapters.optuna.samplers import make_sampler
from tuneoff_adapters.optuna.study import create_study, open_study, quieten
from tuneoff_adapters.optuna_samplers import SAMPLER_OPTIONS

GRID = SearchSpace({"depth": stepped(1, 4, 1, integer=True), "kind": Categorical(choices=("a", [1, 2], None))})


@pytest.fixture(autouse=True)
def _quiet() -> None:
    quieten()


def draw(plan: StudyPlan, count: int, worker: int = 0, generation: int = 0) -> list[dict[str, Any]]:
    """Ask, and tell a loss, `count` times."""
    study = memory_study(plan, worker)
    study.sampler = make_sampler(plan, worker, generation)
    configurations = []
    for number in range(count):
        trial = study.ask(distributions(plan.translation.native))
        configurations.append(plan.translation.decode(trial.params))
        study.tell(trial, float(number))
    return configurations


def test_every_offered_sampler_can_be_made() -> None:
    for name in CAPABILITIES.samplers:
        configurations = sample_distinct(GRID, 3, 0) if name == "fixed" else ()
        make_sampler(plan_of(run_spec(space=GRID, sampler=name, trials=3, configurations=configurations)), worker=0)


def test_the_declared_class_is_the_one_that_is_made() -> None:
    for name in ("random", "default", "tpe", "gp", "cmaes", "sobol"):
        sampler = make_sampler(plan_of(run_spec(sampler=name)), worker=0)
        assert CAPABILITIES.samplers[name].implementation == f"optuna.samplers.{type(sampler).__name__}"


def test_the_default_is_what_create_study_takes_and_is_not_random() -> None:
    assert type(make_sampler(plan_of(run_spec(sampler="default")), worker=0)) is type(optuna.create_study().sampler)


@pytest.mark.parametrize("name", list(SAMPLER_OPTIONS))
def test_every_option_reaches_its_sampler(name: str) -> None:
    given = {
        option: {"n_startup_trials": 3, "n_ei_candidates": 5, "popsize": 6}.get(option, option != "constant_liar")
        for option in SAMPLER_OPTIONS[name]
    }
    make_sampler(plan_of(run_spec(sampler=name, sampler_options=given)), worker=0)


def test_an_unknown_sampler_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="'annealing'"):
        make_sampler(plan_of(run_spec(sampler="annealing")), worker=0)


def test_the_same_seed_worker_and_generation_draw_the_same() -> None:
    plan = plan_of(run_spec())
    assert draw(plan, 5) == draw(plan, 5)


def test_another_worker_generation_or_run_seed_draws_others() -> None:
    plan = plan_of(run_spec())
    first = {str(item) for item in draw(plan, 5)}
    for others in (draw(plan, 5, worker=1), draw(plan, 5, generation=1), draw(plan_of(run_spec(seed=1)), 5)):
        assert first.isdisjoint(str(item) for item in others)


@pytest.mark.parametrize("name", ["tpe", "default", "cmaes"])
def test_model_based_samplers_stay_in_the_space(name: str) -> None:
    for configuration in draw(plan_of(run_spec(sampler=name)), 25):
        SPACE.check(configuration)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gp", "sobol"])
def test_samplers_with_heavy_imports_stay_in_the_space(name: str) -> None:
    for configuration in draw(plan_of(run_spec(sampler=name)), 12):
        SPACE.check(configuration)


@pytest.mark.slow
def test_sobol_workers_share_one_sequence() -> None:
    plan = plan_of(run_spec(sampler="sobol"))
    study = memory_study(plan)
    study.tell(study.ask(distributions(plan.translation.native)), 0.0)  # the first trial is random
    points = []
    for worker in (0, 1, 1, 0):
        study.sampler = make_sampler(plan, worker)
        trial = study.ask(distributions(plan.translation.native))
        points.append(trial.params["x"])
        study.tell(trial, 0.0)
    quarters = sorted(int(4 * point) for point in points)
    assert quarters == [0, 1, 2, 3]  # four successive points of a Sobol sequence fill the quarters


@pytest.mark.parametrize("sampler", ["fixed", "grid"])
def test_a_given_list_is_evaluated_in_order_and_nothing_else(tmp_path: Path, sampler: str) -> None:
    given = sample_distinct(GRID, 5, 3)
    spec = run_spec(space=GRID, sampler=sampler, trials=5, configurations=given if sampler == "fixed" else ())
    expected = given if sampler == "fixed" else grid_order(GRID, spec.sampler_seed)[:5]
    plan = plan_of(spec, tmp_path)
    create_study(plan)
    study = open_study(plan, make_sampler(plan, 0), optuna.pruners.NopPruner())
    asked = [plan.translation.decode(study.ask(distributions(plan.translation.native)).params) for _ in range(5)]
    assert asked == expected
    with pytest.raises(StepError, match="only enqueued configurations may run"):
        study.ask(distributions(plan.translation.native))
