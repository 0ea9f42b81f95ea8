"""Native dimensions in Optuna's distributions, each of which Optuna draws exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import Trial

from tuneoff.experiment.translation import Native, NativeFloat, NativeIndex, Translation


def distributions(native: Mapping[str, Native]) -> dict[str, BaseDistribution]:
    """Return one distribution per native dimension, in their order, which is part of what a seed draws.

    Optuna draws floats in [low, high): the end point itself, of probability 0, is replaced by its neighbour.
    """
    return {name: _distribution(dimension) for name, dimension in native.items()}


def suggest(trial: Trial, name: str, distribution: BaseDistribution) -> Any:
    """Have the trial's sampler (or its enqueued parameters) choose a value."""
    if isinstance(distribution, FloatDistribution):
        return trial.suggest_float(name, distribution.low, distribution.high, log=distribution.log)
    if isinstance(distribution, IntDistribution):
        return trial.suggest_int(name, distribution.low, distribution.high)
    assert isinstance(distribution, CategoricalDistribution)
    return trial.suggest_categorical(name, distribution.choices)


def chosen(trial: Trial, distributions: Mapping[str, BaseDistribution], translation: Translation) -> dict[str, Any]:
    """Have a trial's values chosen and return core's configuration."""
    return translation.decode({name: suggest(trial, name, distribution) for name, distribution in distributions.items()})


def _distribution(dimension: Native) -> BaseDistribution:
    if isinstance(dimension, NativeFloat):
        return FloatDistribution(dimension.low, dimension.high, log=dimension.log)
    if not isinstance(dimension, NativeIndex):
        return FloatDistribution(*dimension.bounds, log=True)
    if dimension.ordered:
        return IntDistribution(0, dimension.size - 1)
    return CategoricalDistribution(tuple(range(dimension.size)))
