"""What Optuna chooses by: distributions, and samplers, one object per worker process with its own seed. Imports Optuna."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, QMCSampler, RandomSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial

from tuneoff.errors import StepError, UnsupportedError
from tuneoff.experiment.translation import Native, NativeFloat, NativeIndex, Translation
from tuneoff_adapters.optuna.plan import StudyPlan


def distributions(native: Mapping[str, Native]) -> dict[str, BaseDistribution]:
    """Return one distribution per native dimension, in their order, which is part of what a seed draws.

    Optuna draws floats in [low, high): the end point itself, of probability 0, is replaced by its neighbour.
    """
    distributions: dict[str, BaseDistribution] = {}
    for name, dimension in native.items():
        if isinstance(dimension, NativeFloat):
            distributions[name] = FloatDistribution(dimension.low, dimension.high, log=dimension.log)
        elif not isinstance(dimension, NativeIndex):
            distributions[name] = FloatDistribution(*dimension.bounds, log=True)
        elif dimension.ordered:
            distributions[name] = IntDistribution(0, dimension.size - 1)
        else:
            distributions[name] = CategoricalDistribution(tuple(range(dimension.size)))
    return distributions


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


def make_sampler(plan: StudyPlan, worker: int, generation: int = 0) -> BaseSampler:
    """Return the sampler of one worker.

    Raises:
        UnsupportedError: the plan names another sampler than the offered ones.
    """
    if plan.listed:
        return ListedOnlySampler()
    seed = plan.sampler_seed(worker, generation)
    options: dict[str, Any] = dict(plan.sampler.options)
    match plan.sampler.name:
        case "random":
            return RandomSampler(seed=seed)
        case "default" | "tpe":
            return TPESampler(**options, seed=seed)
        case "gp":
            return GPSampler(**options, seed=seed)
        case "cmaes":
            return CmaEsSampler(**options, seed=seed, warn_independent_sampling=False)
        case "sobol":
            # One sequence for all workers (they count its points in the storage), so one seed; the first trial is random.
            return QMCSampler(
                qmc_type="sobol",
                **{"scramble": True, **options},
                seed=plan.seed,
                independent_sampler=RandomSampler(seed=seed),
                warn_independent_sampling=False,
            )
    raise UnsupportedError(f"sampler {plan.sampler.name!r} is not offered by adapter 'optuna'")


class ListedOnlySampler(BaseSampler):
    """For a given list: its configurations were enqueued, so whoever asks for more than these gets an error."""

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]) -> dict[str, Any]:
        return {}

    def sample_independent(self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution) -> Any:
        raise StepError(f"only enqueued configurations may run, but Optuna asked for another one as trial {trial.number}")
