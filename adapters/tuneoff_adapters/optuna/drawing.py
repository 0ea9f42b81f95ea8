"""Configurations as the workers' samplers choose them, without running any. Imports Optuna."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from tuneoff.experiment.translation import FrameworkSpace
from tuneoff.record.run_context import RunContext
from tuneoff_adapters.optuna.options import study_plan
from tuneoff_adapters.optuna.search import chosen, distributions, make_sampler
from tuneoff_adapters.optuna.study import quieten


def draw(context: RunContext, count: int) -> Iterator[Mapping[str, object]]:
    """Yield configurations; the samplers of all `workers.count` workers take turns, each with a study in memory.

    A random sampler reads nothing from the storage, and a journal would take 25 ms for each of these configurations.
    """
    quieten()
    plan = study_plan(context.spec, context.work_dir)
    wanted = distributions(plan.translation.native)
    workers = range(context.spec.experiment.workers.count)
    studies = [optuna.create_study(sampler=make_sampler(plan, worker)) for worker in workers]
    for number in range(count):
        yield chosen(studies[number % len(studies)].ask(), wanted, plan.translation)


def framework_space(context: RunContext) -> FrameworkSpace:
    """Return the space as Optuna has it."""
    translation = study_plan(context.spec, context.work_dir).translation
    ends = {name: _ends(distribution) for name, distribution in distributions(translation.native).items()}
    return FrameworkSpace(ends=ends, decode=translation.decode, encode=translation.encode)


def _ends(distribution: BaseDistribution) -> tuple[Any, Any]:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[0], distribution.choices[-1]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    return distribution.low, distribution.high
