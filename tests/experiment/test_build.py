"""From a checked file to specifications."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fake_plugins
from builders.refusals import refusal
from tuneoff.base.identity import configuration_digest
from tuneoff.errors import PluginError
from tuneoff.experiment.build import build_experiments
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.spec import ExperimentSpec

Build = Callable[[dict[str, Any]], list[ExperimentSpec]]
LEAST: dict[str, Any] = {"workload": "curve", "adapters": ["plain"], "budget": {"trials": 5}}
SMALL_SPACE = {
    "rate": {"type": "float", "low": 0, "high": 1},
    "width": {"type": "int", "low": 1, "high": 4},
    "fixed": {"type": "constant", "value": 7},
}
FIXED = {"search_space": SMALL_SPACE, "sampler": "fixed"}
SCRIPTED = {"search_space": SMALL_SPACE, "pruner": "scripted"}
STOP = {"configuration": {"rate": 1, "width": 2}, "after_epoch": 2}
FINITE_SPACE = {"rate": {"type": "float", "low": 0, "high": 1, "step": 0.25}, "width": {"type": "int", "low": 1, "high": 4}}


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    fake_plugins.register(monkeypatch)

    def from_content(content: dict[str, Any]) -> list[ExperimentSpec]:
        path = tmp_path / "file.yaml"
        path.write_text(json.dumps(content))
        return build_experiments(load_matrix(path), samplers=["own"], pruners=["own"])

    return from_content


def test_fixed_configurations_are_completed_and_bound_the_trials(build: Build) -> None:
    content = {**LEAST, **FIXED, "budget": {}}
    (experiment,) = build({**content, "configurations": [{"rate": 1, "width": 2}, {"rate": 0.5, "width": 3, "fixed": 7}]})
    assert experiment.configurations == ({"rate": 1.0, "width": 2, "fixed": 7}, {"rate": 0.5, "width": 3, "fixed": 7})
    assert type(experiment.configurations[0]["rate"]) is float
    assert experiment.budget.trials == 2


def test_drawn_configurations_are_the_same_each_time_and_differ(build: Build) -> None:
    content = {**LEAST, **FIXED, "budget": {}, "configurations": {"sample": 20, "seed": 1}}
    (one,), (other,) = build(content), build(content)
    assert one == other
    assert len({configuration_digest(item) for item in one.configurations}) == 20


def test_a_stop_may_name_its_configuration(build: Build) -> None:
    (experiment,) = build({**LEAST, **SCRIPTED, "stops": [STOP]})
    assert experiment.stops == {configuration_digest({"rate": 1.0, "width": 2, "fixed": 7}): 2}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"workload": "curv"}, "workload: no workload named 'curv'; did you mean 'curve'?; known: careless, curve, heavy"),
        ({"workload": {"name": "curve", "options": {"nois": 1}}}, "workload.options: workload 'curve' has no option 'nois'"),
        (
            {"search_space": {"other": {"type": "constant", "value": 1}}},
            "search_space: the workload 'curve' needs a dimension 'rate'",
        ),
        ({"objective": {"metric": "acuracy"}}, "objective: metric: no metric named 'acuracy'; did you mean 'accuracy'?"),
        ({"objective": {"metric": "loss", "mode": "max"}}, "objective: mode: 'loss' is better at its min, but got mode='max'"),
        ({"objective": {"stop": True}}, "objective: stop: there is no goal to stop at; write goal: VALUE"),
        (
            {"objective": {"metric": "loss", "goal": {"light": 0.1, "full": 0.2}}},
            "objective: goal: each must be harder than the one before (mode min), but got light=0.1 and then full=0.2",
        ),
        (
            {"anchors": {"random_search": 0.99, "best_known": 0.9, "source": "planted"}},
            "anchors: best_known must be better than random_search, but the max of 'accuracy' is better",
        ),
        (
            {"objective": {"metric": "loss"}, "anchors": {"random_search": 0.1, "best_known": 0.2, "source": "planted"}},
            "anchors: best_known must be better than random_search, but the min of 'loss' is better",
        ),
        ({"sampler": "radnom"}, "sampler: no sampler named 'radnom'; did you mean 'random'?"),
        ({"sampler": {"name": "random", "seed": 3}}, "sampler: sampler 'random' has no options, but got 'seed'; remove it"),
        ({"pruner": "ahsa"}, "pruner: no pruner named 'ahsa'; did you mean 'asha'?"),
        (
            {"pruner": {"name": "asha", "eta": 3}},
            "pruner: pruner 'asha' has no option 'eta'; it has: first_rung_epochs, reduction_factor",
        ),
        ({"pruner": {"name": "asha", "reduction_factor": 1}}, "`asha.reduction_factor` must be an integer >= 2, but got 1"),
        ({"pruner": {"name": "hyperband", "first_rung_epochs": 10}}, "may be at most `budget.epochs_per_trial` (9), but got 10"),
        ({"pruner": {"name": "median", "min_trials": 0}}, "`median.min_trials` must be an integer >= 1, but got 0"),
        ({"budget": {}}, "budget.trials: is required for sampler 'random'"),
        ({"sampler": "grid"}, "sampler: a grid needs finite dimensions, but rate is continuous; give it a step"),
        (
            {"sampler": "grid", "search_space": FINITE_SPACE, "budget": {"trials": 21}},
            "has 20 configurations, but got 21 trials; use at most 20",
        ),
        ({"sampler": "fixed"}, "configurations: `sampler: fixed` needs a list of configurations, but got none"),
        ({"sampler": "fixed", "configurations": {"sample": 3}}, "has 3 configurations, but got 5 trials"),
        ({**FIXED, "configurations": [{"rate": 2, "width": 1}]}, "configurations: 0: rate=2 lies outside float [0, 1]"),
        ({**FIXED, "configurations": [{"rate": 1}]}, "configurations: 0: a configuration must name"),
        (
            {**FIXED, "configurations": [{"rate": 1, "width": 1}, {"rate": 1.0, "width": 1}]},
            "configurations: 1: configurations must differ, but it equals number 0; remove one",
        ),
        (
            {**FIXED, "search_space": FINITE_SPACE, "configurations": {"sample": 21}},
            "at most 20 different configurations exist, but 21",
        ),
        (
            {**FIXED, "configurations": {"sample": 5}, "first_configurations": [{"rate": 1, "width": 1}]},
            "sampler 'fixed' tries nothing but its list; remove them",
        ),
        (
            {"budget": {"trials": 1}, "first_configurations": [{"rate": 0.1, "width": 2}, {"rate": 0.01, "width": 2}]},
            "budget.trials: must be at least the 2 `first_configurations`, but got 1",
        ),
        ({"pruner": "scripted"}, "stops: `pruner: scripted` needs `stops`, but got none"),
        (
            {"pruner": "scripted", "stops": [{"index": 0, "after_epoch": 1}]},
            "stops: 0: index must be less than the 0 configurations, but got 0",
        ),
        (
            {**SCRIPTED, "stops": [{**STOP, "after_epoch": 9}]},
            "stops: 0.after_epoch: must be less than `budget.epochs_per_trial` (9), but got 9",
        ),
        ({**SCRIPTED, "stops": [STOP, STOP]}, "stops: 1: a configuration may be stopped once"),
        ({"matrix": {"sampler": ["random", "wrong"]}}, "file.yaml (sampler=wrong): sampler: no sampler named 'wrong'"),
    ],
)
def test_parts_that_do_not_fit_are_one_line(build: Build, content: dict[str, Any], problem: str) -> None:
    said = refusal(build, {**LEAST, **content})
    assert problem in said
    assert "file.yaml" in said


def test_an_adapters_own_strategy_keeps_its_options(build: Build) -> None:
    (experiment,) = build({**LEAST, "sampler": {"name": "own", "depth": 3}, "pruner": {"name": "own", "width": 1}})
    assert (experiment.sampler.options, experiment.pruner.options) == ({"depth": 3}, {"width": 1})


def test_a_careless_workload_is_a_broken_plugin(build: Build) -> None:
    with pytest.raises(
        PluginError, match=r"workload 'careless' fails on the experiment instead of refusing it: KeyError: 'size'"
    ):
        build({**LEAST, "workload": "careless"})
