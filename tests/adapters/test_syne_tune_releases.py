"""Syne Tune's earlier releases: what is made of their classes, which are recorded here; refusals of what they lack."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from builders.specs import TOY, toy_spec
from tuneoff.base.space import Float, IntegerLog, SearchSpace
from tuneoff.experiment import strategies
from tuneoff.experiment.skip_check import SkipCheck
from tuneoff.experiment.spec import EnvironmentSpec, RunSpec, WorkloadSpec
from tuneoff.experiment.translation import translation_of
from tuneoff_adapters.syne_tune import offers
from tuneoff_adapters.syne_tune.adapter import SyneTuneAdapter
from tuneoff_adapters.syne_tune.schedulers import make_scheduler

SPACE = SearchSpace({"x": Float(low=0.0, high=1.0)})


class Recorded:
    """A class of an earlier release, of which only the name and the arguments are looked at."""

    def __init__(self, *wrapped: Any, **arguments: Any) -> None:
        self.wrapped, self.arguments = wrapped, arguments


def scheduler_of(**about: Any) -> Any:
    spec = toy_spec("syne-tune", space=SPACE, epochs=9, **about)
    return make_scheduler(spec, translation_of(spec))


@pytest.fixture
def of_0_13(monkeypatch: pytest.MonkeyPatch) -> None:
    """Syne Tune with the names of 0.13."""
    from syne_tune.optimizer import baselines
    from syne_tune.optimizer.schedulers import median_stopping_rule

    for name in ("TPE", "BOTorch"):
        monkeypatch.delattr(baselines, name)
    for name in ("RandomSearch", "KDE", "REA", "BoTorch", "ASHA", "BOHB", "FIFOScheduler", "HyperbandScheduler"):
        monkeypatch.setattr(baselines, name, type(name, (Recorded,), {}), raising=False)
    monkeypatch.setattr(median_stopping_rule, "MedianStoppingRule", type("MedianStoppingRule", (Recorded,), {}))


@pytest.mark.usefixtures("of_0_13")
@pytest.mark.parametrize(
    ("sampler", "options", "name", "where"),
    [
        ("tpe", {"num_candidates": 5}, "KDE", {"search_options": {"num_candidates": 5}}),
        ("rea", {"population_size": 5}, "REA", {"population_size": 5}),
        ("gp", {}, "BoTorch", {"search_options": {}}),
        ("random", {}, "RandomSearch", {"search_options": {"allow_duplicates": True}}),
        (
            "bayesopt_cost",
            {},
            "FIFOScheduler",
            {"searcher": "bayesopt_cost", "search_options": {"cost_attr": "st_worker_time"}},
        ),
    ],
)
def test_0_13_has_the_samplers_under_other_names(sampler: str, options: dict[str, Any], name: str, where: dict[str, Any]) -> None:
    scheduler = scheduler_of(sampler=sampler, sampler_options=options, mode="max")
    assert type(scheduler).__name__ == name
    assert scheduler.arguments.items() >= {"mode": "max", "metric": "objective", "points_to_evaluate": [], **where}.items()


@pytest.mark.usefixtures("of_0_13")
def test_0_13_halves_by_stopping_at_the_same_rungs() -> None:
    scheduler = scheduler_of(
        sampler="tpe", pruner="hyperband", pruner_options={"first_rung_epochs": 2, "reduction_factor": 4, "brackets": 2}
    )
    assert type(scheduler).__name__ == "BOHB"
    rungs = {"type": "stopping", "resource_attr": "epoch", "max_t": 10, "grace_period": 2, "reduction_factor": 4, "brackets": 2}
    assert scheduler.arguments.items() >= rungs.items()


@pytest.mark.usefixtures("of_0_13")
def test_0_13_wraps_random_search_in_its_median_and_takes_a_list_as_points() -> None:
    configurations = tuple({"x": index / 4} for index in range(4))
    rule = scheduler_of(sampler="fixed", configurations=configurations, pruner="median")
    assert rule.arguments["resource_attr"] == "epoch"
    (scheduler,) = rule.wrapped
    assert len(scheduler.arguments["points_to_evaluate"]) == 4


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_before_0_16_the_rungs_are_given_to_what_the_baselines_inherit(monkeypatch: pytest.MonkeyPatch, sampler: str) -> None:
    from syne_tune.optimizer import baselines
    from syne_tune.optimizer.schedulers.asha import AsynchronousSuccessiveHalving

    class Baseline(AsynchronousSuccessiveHalving):  # type: ignore[misc]
        def __init__(self, config_space: Any, metric: str, time_attr: str, max_t: int) -> None:
            raise AssertionError("it hands no rungs on")

    options = {"pruner": "hyperband", "pruner_options": {"first_rung_epochs": 1, "reduction_factor": 3, "brackets": 2}}
    now = scheduler_of(sampler=sampler, **options)
    monkeypatch.setattr(baselines, offers.HALVING_CLASSES[sampler], Baseline)
    before = scheduler_of(sampler=sampler, **options)
    assert type(before) is AsynchronousSuccessiveHalving
    rungs = [[[rung for rung, _ in bracket.rungs] for bracket in scheduler.brackets] for scheduler in (now, before)]
    assert rungs[0] == rungs[1] != []
    assert before.searcher.searcher_cls is now.searcher.searcher_cls


def test_before_0_15_the_median_calls_its_time_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from syne_tune.optimizer.schedulers import median_stopping_rule

    class Rule(Recorded):
        def __init__(self, scheduler: Any, resource_attr: str, **arguments: Any) -> None:
            super().__init__(scheduler, resource_attr=resource_attr, **arguments)

    monkeypatch.setattr(median_stopping_rule, "MedianStoppingRule", Rule)
    assert scheduler_of(pruner="median").arguments["resource_attr"] == "epoch"


@pytest.mark.parametrize(
    ("about", "here", "words"),
    [
        (
            {"sampler": "tpe"},
            "0.14.2",
            "sampler 'tpe' under pruner 'asha' needs Syne Tune 0.15 or later, but 0.14.2 is installed",
        ),
        ({"sampler": "random"}, "0.14.2", None),
        ({"sampler": "tpe"}, "0.13.0", None),
        ({"retries": 1}, "0.13.0", "a retry under pruner 'asha' needs Syne Tune 0.14 or later, but 0.13.0 is installed"),
        ({"retries": 1}, "0.14.0", None),
    ],
)
def test_what_earlier_releases_cannot_do_under_halving_is_refused(
    monkeypatch: pytest.MonkeyPatch, about: dict[str, Any], here: str, words: str | None
) -> None:
    monkeypatch.setattr(strategies, "installed_version", lambda package: here)
    monkeypatch.setattr(offers, "missing_modules", lambda names: [])
    refusal = offers.refusal(toy_spec("syne-tune", space=SPACE, pruner="asha", **about))
    assert refusal == words or (words is not None and refusal is not None and refusal.startswith(words))


def test_what_0_14_imports_without_requiring_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offers, "missing_modules", lambda names: ["botorch"] if "botorch" in names else [])
    spec = toy_spec("syne-tune", space=SPACE)
    refusals = []
    for here in ("0.13.0", "0.14.2", "0.15.0"):
        monkeypatch.setattr(strategies, "installed_version", {"syne-tune": here}.get)
        refusals.append(offers.refusal(spec))
    assert refusals[::2] == [None, None]
    assert refusals[1] == "Syne Tune 0.14.2 imports botorch for any scheduler; run: pip install botorch huggingface_hub"


MNIST = WorkloadSpec(name="mnist_mlp", target="tuneoff_workloads.mnist_mlp.workload:MnistMlp")
WIDTHS = SearchSpace({"hidden_width": IntegerLog(low=8, high=512), "dropout": Float(low=0.0, high=0.5)})


def cost_aware(*, options: dict[str, Any] | None = None, workload: WorkloadSpec = TOY, **about: Any) -> RunSpec:
    return toy_spec("syne-tune", space=WIDTHS, sampler=offers.COST_AWARE, sampler_options=options, workload=workload, **about)


@pytest.mark.usefixtures("of_0_13")
@pytest.mark.parametrize(("pruner", "name"), [("none", "FIFOScheduler"), ("asha", "HyperbandScheduler")])
def test_0_13_is_told_what_the_workload_says_that_a_configuration_costs(
    monkeypatch: pytest.MonkeyPatch, pruner: str, name: str
) -> None:
    models = "syne_tune.optimizer.schedulers.searchers.bayesopt"
    cost_name = {"INTERNAL_COST_NAME": "cost_metric"}
    for module, has in ((f"{models}.datatypes.common", cost_name), (f"{models}.models.cost.cost_model", {"CostModel": object})):
        monkeypatch.setitem(sys.modules, module, SimpleNamespace(**has))
    spec = cost_aware(options={strategies.COST_MODEL: True}, workload=MNIST, pruner=pruner, epochs=9)
    scheduler = make_scheduler(spec, translation_of(spec))
    assert type(scheduler).__name__ == name
    told = scheduler.arguments["search_options"]
    assert (told["resource_attr"], told["max_epochs"], told["cost_model"].cost_metric_name) == ("epoch", 9, "cost_metric")
    narrow, wide = {"hidden_width": 8.0, "dropout": 0.1}, {"hidden_width": 512.0, "dropout": 0.1, "epoch": 1}
    one, many, more = told["cost_model"].predict_times([narrow, narrow, wide], [1, 9, 9], [])
    assert many == pytest.approx(9 * one)
    assert more > many > 0


def test_a_release_without_the_cost_aware_sampler_is_refused_with_the_one_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    start = "sampler 'bayesopt_cost' of adapter 'syne-tune' needs Syne Tune before 0.14, but "
    monkeypatch.setattr(strategies, "installed_version", {"syne-tune": "0.16.0"}.get)
    assert SkipCheck().reason(cost_aware(workload=MNIST), SyneTuneAdapter) == f"{start}0.16.0 is installed; use syne-tune==0.13"
    asked = [replace(cost_aware(workload=MNIST), environment=EnvironmentSpec(version=version)) for version in ("0.14", "0.13.0")]
    reasons = [SkipCheck().reason(spec, SyneTuneAdapter) for spec in asked]
    assert reasons == [f"{start}0.14 is asked for; use syne-tune==0.13", None]


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({}, None),
        ({"pruner": "asha"}, "under pruner 'asha' needs `cost_model: true`"),
        ({"options": {"cost_model": True}}, "with `cost_model` needs a workload with `cost`, which 'toy' lacks; remove it"),
        ({"options": {"cost_model": True}, "workload": MNIST}, None),
        ({"options": {"cost_model": True}, "workload": MNIST, "pruner": "asha"}, None),
        ({"options": {"cost_model": 1}, "workload": MNIST}, "must be true or false, but got 1"),
    ],
)
def test_the_cost_aware_sampler_needs_a_cost_that_somebody_knows(about: dict[str, Any], words: str | None) -> None:
    refusal = offers.refusal(cost_aware(**about))
    assert refusal == words or (words is not None and refusal is not None and words in refusal)
