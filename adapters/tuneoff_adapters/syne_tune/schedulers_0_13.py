"""The schedulers of Syne Tune 0.13, whose names and arguments are others; importing it imports nothing of Syne Tune."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tuneoff.experiment.strategies import COST_MODEL
from tuneoff_adapters.syne_tune.offers import CLASSES, COST_AWARE, DRAWN_AT_RANDOM, HALVING_CLASSES, HALVING_PRUNERS
from tuneoff_adapters.syne_tune.reporter import OBJECTIVE, TIME_ATTRIBUTE

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec

NAMES = {"TPE": "KDE", "BOTorch": "BoTorch"}  # by the later one


def make_scheduler_0_13(
    spec: RunSpec, space: dict[str, Any], points: list[dict[str, float | int]] | None, rungs: dict[str, Any], rule: dict[str, Any]
) -> Any:
    """Return the scheduler of 0.13 for an experiment.

    `points`: to be evaluated first; without any it begins as later releases do, not at the middle of the space.
    `rungs`, `rule`: the arguments of successive halving and of the median rule that all releases have.
    """
    from syne_tune.optimizer import baselines
    from syne_tune.optimizer.schedulers.median_stopping_rule import MedianStoppingRule

    experiment = spec.experiment
    sampler, pruner = experiment.sampler, experiment.pruner
    name = HALVING_CLASSES[sampler.name] if pruner.name in HALVING_PRUNERS else CLASSES[sampler.name]
    arguments: dict[str, Any] = {
        "config_space": space,
        "metric": OBJECTIVE,
        "mode": experiment.objective.mode,
        "random_seed": spec.sampler_seed,
        "points_to_evaluate": points or [],
    }
    if sampler.name in DRAWN_AT_RANDOM:
        arguments["search_options"] = {"allow_duplicates": True}  # as in later releases: else a small space is soon exhausted
    elif name == "REA":
        arguments.update(sampler.options)
    elif sampler.name == COST_AWARE:
        arguments.update(searcher=COST_AWARE, search_options=_cost_options(spec))
    else:
        arguments["search_options"] = dict(sampler.options)
    if pruner.name in HALVING_PRUNERS:
        return getattr(baselines, name)(resource_attr=TIME_ATTRIBUTE, type="stopping", **rungs, **arguments)
    scheduler = getattr(baselines, NAMES.get(name, name))(**arguments)
    if pruner.name != "median":
        return scheduler
    return MedianStoppingRule(scheduler, resource_attr=TIME_ATTRIBUTE, **rule)


def _cost_options(spec: RunSpec) -> dict[str, Any]:
    """Return how the cost-aware searcher learns of costs: `cost_attr` is the report's key of what was measured."""
    from syne_tune.constants import ST_WORKER_TIME

    if not spec.experiment.sampler.options.get(COST_MODEL):
        return {"cost_attr": ST_WORKER_TIME}
    from tuneoff_adapters.syne_tune.cost_model_0_13 import WorkloadCost

    all_epochs = {"resource_attr": TIME_ATTRIBUTE, "max_epochs": spec.experiment.budget.epochs_per_trial}
    return {"cost_attr": COST_MODEL, "cost_model": WorkloadCost(spec), **all_epochs}  # no report has that key
