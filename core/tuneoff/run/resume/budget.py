"""What earlier executions of a run left of its budget."""

from __future__ import annotations

from typing import NamedTuple

from tuneoff.experiment.spec import Budget
from tuneoff.record.history import History


class BudgetLeft(NamedTuple):
    """Trials, epochs and seconds that may still be used; None where there is no such limit."""

    trials: int
    epochs_total: int | None
    wall_clock_seconds: float | None


def budget_left(budget: Budget, history: History) -> BudgetLeft:
    """Return what is left: a finished trial has used its ticket, an epoch and a second of a lost attempt are used too."""
    epochs, seconds = budget.epochs_total, budget.wall_clock_seconds
    return BudgetLeft(
        trials=budget.trials - len(history.finished),
        epochs_total=None if epochs is None else max(0, epochs - history.epochs),
        wall_clock_seconds=None if seconds is None else max(0.0, seconds - history.seconds),
    )
