"""Configurations as Syne Tune's scheduler proposes them, without a tuner and its backend. Imports Syne Tune."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tuneoff.experiment.translation import FrameworkSpace, translation_of
from tuneoff.record.run_context import RunContext
from tuneoff_adapters.syne_tune.budgeted import BudgetedScheduler
from tuneoff_adapters.syne_tune.dispatch import Dispatch
from tuneoff_adapters.syne_tune.schedulers import domains, make_scheduler


def draw(context: RunContext, count: int) -> Iterator[Mapping[str, object]]:
    """Yield the configurations of at most `count` proposals, each as its trial would get it."""
    translation = translation_of(context.spec)
    dispatch = Dispatch(context)
    scheduler = BudgetedScheduler(context, dispatch, make_scheduler(context.spec, translation), translation)
    for number in range(count):
        if scheduler.suggest() is None:
            return
        yield dispatch.start(number).configuration


def framework_space(context: RunContext) -> FrameworkSpace:
    """Return the space as Syne Tune has it."""
    translation = translation_of(context.spec)
    ends = {name: _ends(domain) for name, domain in domains(translation.native).items()}
    return FrameworkSpace(ends=ends, decode=translation.decode, encode=translation.encode)


def _ends(domain: Any) -> tuple[Any, Any]:
    from syne_tune.config_space import Categorical

    if isinstance(domain, Categorical):
        return domain.categories[0], domain.categories[-1]
    return domain.lower, domain.upper  # both are drawn
