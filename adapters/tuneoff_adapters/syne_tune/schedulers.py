"""Syne Tune's own scheduler for an experiment, seeded, over its types; importing it imports nothing of Syne Tune."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tuneoff.experiment.translation import LIST_INDEX, ListTranslation, NativeFloat, NativeIndex
from tuneoff_adapters.syne_tune.offers import CLASSES, HALVING_CLASSES, HALVING_PRUNERS
from tuneoff_adapters.syne_tune.reporter import OBJECTIVE, TIME_ATTRIBUTE

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

    experiment = spec.experiment
    sampler, pruner = experiment.sampler, experiment.pruner
    seed = spec.sampler_seed
    arguments: dict[str, Any] = {
        "config_space": domains(translation.native),
        "do_minimize": experiment.objective.mode == "min",
        "random_seed": seed,
        **sampler.options,
    }
    if isinstance(translation, ListTranslation):
        arguments["points_to_evaluate"] = [{LIST_INDEX: index} for index in range(len(translation.configurations))]
    numpy.random.seed(seed)
    if pruner.name in HALVING_PRUNERS:
        return getattr(baselines, HALVING_CLASSES[sampler.name])(
            metric=OBJECTIVE,
            time_attr=TIME_ATTRIBUTE,
            max_t=experiment.budget.epochs_per_trial + 1,  # at max_t it stops a trial, so a full-length one would be killed
            grace_period=pruner.options.get("first_rung_epochs", 1),
            reduction_factor=pruner.options.get("reduction_factor", 3),
            brackets=pruner.options.get("brackets", 3) if pruner.name == "hyperband" else 1,
            **arguments,
        )
    name = CLASSES[sampler.name]
    metric = {"metrics": [OBJECTIVE]} if name == "RandomSearch" else {"metric": OBJECTIVE}
    scheduler = getattr(baselines, name)(**metric, **arguments)
    if pruner.name != "median":
        return scheduler
    from syne_tune.optimizer.schedulers.median_stopping_rule import MedianStoppingRule

    # it wraps random search; metric and direction are repeated because the rule takes neither from what it wraps
    return MedianStoppingRule(
        scheduler,
        time_attr=TIME_ATTRIBUTE,
        metric=OBJECTIVE,
        do_minimize=experiment.objective.mode == "min",
        running_average=True,
        grace_time=pruner.options.get("first_epoch", 1),
        grace_population=pruner.options.get("min_trials", 5) + 1,  # it counts the trial itself
        rank_cutoff=0.5,
        random_seed=seed,
    )


def domains(native: Mapping[str, Native]) -> dict[str, Any]:
    """Return Syne Tune's configuration space; imports Syne Tune."""
    return {name: _domain(kind) for name, kind in native.items()}


def _domain(kind: Native) -> Any:
    from syne_tune.config_space import choice, loguniform, randint, uniform

    if isinstance(kind, NativeFloat):
        return loguniform(kind.low, kind.high) if kind.log else uniform(kind.low, kind.high)
    if isinstance(kind, NativeIndex):
        return randint(0, kind.size - 1) if kind.ordered else choice(list(range(kind.size)))  # both ends included
    return loguniform(*kind.bounds)
