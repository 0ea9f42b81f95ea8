"""Continued runs of frameworks that begin anew: how trials are named there, and which is the best of all executions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tuneoff.adapter import Best
from tuneoff.base.identity import trial_name

if TYPE_CHECKING:
    from tuneoff.record.history import History
    from tuneoff.record.run_context import RunContext


def trial_names(history: History, is_redrawn: bool) -> Iterator[str]:
    """Yield the ids of a run's trials in the order in which the framework proposes them.

    `is_redrawn`: it draws all again, what is finished too; else it begins with what was not ended before.
    """
    start = 0
    if not is_redrawn:
        yield from (trial.trial_id for trial in history.unfinished)
        start = history.next_number
    yield from map(trial_name, itertools.count(start))


def best_of_all(context: RunContext, best: tuple[float, Best] | None) -> Best | None:
    """Return the better one of the framework's best trial with its value and that of earlier executions, which it knows not."""
    objective = context.spec.experiment.objective
    before = context.history.best(objective.mode)
    if before is None or (best is not None and objective.is_better(best[0], than=before.value)):
        return None if best is None else best[1]
    return Best(trial_id=before.trial_id, configuration=before.configuration, value=before.value)
