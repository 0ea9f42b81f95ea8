"""Syne Tune's own scheduler for an experiment, seeded, over its types; importing it imports nothing of Syne Tune."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tuneoff.experiment.translation import ListTranslation, NativeIndex, given_values
from tuneoff_adapters.syne_tune.offers import CLASSES, HALVING_CLASSES, HALVING_PRUNERS, HALVING_SEARCHERS
from tuneoff_adapters.syne_tune.reporter import OBJECTIVE, TIME_ATTRIBUTE
from tuneoff_adapters.syne_tune.schedulers_0_13 import make_scheduler_0_13

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec
    from tuneoff.experiment.translation import Native, SpaceTranslation


def make_scheduler(spec: RunSpec, translation: ListTranslation | SpaceTranslation) -> Any:
    """Return the scheduler, with every argument that matters set explicitly.

    It seeds numpy's global generator: that is what the searchers draw from, whatever `random_seed` says. Nothing else in
    this process may draw from it afterwards.
    """
    import numpy
    from syne_tune.optimizer import baselines
    from syne_tune.optimizer.schedulers.median_stopping_rule import MedianStoppingRule

    experiment = spec.experiment
    sampler, pruner = experiment.sampler, experiment.pruner
    seed = spec.sampler_seed
    points = given_values(spec) or None
    rungs = {
        "max_t": experiment.budget.epochs_per_trial + 1,  # at max_t it stops a trial, so a full-length one would be killed
        "grace_period": pruner.options.get("first_rung_epochs", 1),
        "reduction_factor": pruner.options.get("reduction_factor", 3),
        "brackets": pruner.options.get("brackets", 3) if pruner.name == "hyperband" else 1,
    }
    rule = {  # of MedianStoppingRule, which takes no metric from what it wraps
        "metric": OBJECTIVE,
        "running_average": True,
        "grace_time": pruner.options.get("first_epoch", 1),
        "grace_population": pruner.options.get("min_trials", 5) + 1,  # it counts the trial itself
        "rank_cutoff": 0.5,
    }
    numpy.random.seed(seed)
    if not hasattr(baselines, "TPE"):
        return make_scheduler_0_13(spec, domains(translation.native), points, rungs, rule)
    arguments: dict[str, Any] = {
        "config_space": domains(translation.native),
        "do_minimize": experiment.objective.mode == "min",
        "random_seed": seed,
    }
    if pruner.name in HALVING_PRUNERS:
        halving = getattr(baselines, HALVING_CLASSES[sampler.name])
        of_sampler = {"points_to_evaluate": points, **sampler.options}
        if "brackets" not in inspect.signature(halving).parameters:  # before 0.16: it hands no rungs on, 0.14's no points
            of_sampler = {"searcher": HALVING_SEARCHERS.get(sampler.name, "random_search"), "searcher_kwargs": of_sampler}
            halving = halving.__base__
        return halving(metric=OBJECTIVE, time_attr=TIME_ATTRIBUTE, **rungs, **of_sampler, **arguments)
    name = CLASSES[sampler.name]
    metric = {"metrics": [OBJECTIVE]} if name == "RandomSearch" else {"metric": OBJECTIVE}
    scheduler = getattr(baselines, name)(**metric, points_to_evaluate=points, **sampler.options, **arguments)
    if pruner.name != "median":
        return scheduler
    is_new = "time_attr" in inspect.signature(MedianStoppingRule).parameters  # since 0.15
    rule["time_attr" if is_new else "resource_attr"] = TIME_ATTRIBUTE
    # it wraps random search, and takes no direction from it either
    return MedianStoppingRule(scheduler, **rule, do_minimize=arguments["do_minimize"], random_seed=seed)


def domains(native: Mapping[str, Native]) -> dict[str, Any]:
    """Return Syne Tune's configuration space; imports Syne Tune."""
    from syne_tune.config_space import choice, loguniform, randint, uniform

    space = {}
    for name, kind in native.items():
        if isinstance(kind, NativeIndex):
            space[name] = randint(0, kind.size - 1) if kind.ordered else choice(list(range(kind.size)))  # both ends included
        else:
            space[name] = (loguniform if kind.log else uniform)(*kind.bounds)
    return space
