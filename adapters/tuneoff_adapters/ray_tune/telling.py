"""Tell Ray's searcher and scheduler what the run's earlier executions did, through their own methods. Imports Ray."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ray.tune.schedulers import ASHAScheduler, MedianStoppingRule

from tuneoff.record.history import FinishedTrial, History, begun
from tuneoff_adapters.ray_tune.keys import EPOCH, OBJECTIVE
from tuneoff_adapters.ray_tune.submission import Submissions


class _Past:
    """Stands in for a Ray trial of an earlier execution: schedulers know a trial by its id alone."""

    def __init__(self, trial_id: str) -> None:
        self.trial_id = f"earlier_{trial_id}"


class _Told:
    """A scheduler that sees the results of finished trials, in their order, as soon as it knows the metric."""

    history: History

    def set_search_properties(self, metric: str | None, mode: str | None, **spec: Any) -> bool:
        done: bool = super().set_search_properties(metric, mode, **spec)  # type: ignore[misc]
        for trial in begun(self.history):
            if isinstance(trial, FinishedTrial):
                _show(self, trial)
        return done


class ToldAsha(_Told, ASHAScheduler):  # type: ignore[misc]
    """Ray's ASHA with the rungs of finished trials."""


class ToldMedian(_Told, MedianStoppingRule):  # type: ignore[misc]
    """Ray's median rule with the results of finished trials."""


def _show(scheduler: Any, trial: FinishedTrial) -> None:
    past = _Past(trial.trial_id)
    scheduler.on_trial_add(None, past)
    result: dict[str, Any] = {}
    for epoch, value in trial.values:
        if value is not None:
            result = {EPOCH: epoch, OBJECTIVE: value}
            scheduler.on_trial_result(None, past, result)
    if result and trial.state != "failed":
        scheduler.on_trial_complete(None, past, result)


def tell_searcher(searcher: Any, submissions: Submissions) -> None:
    """Add the finished trials as evaluated points: a pruned one as complete, as OptunaSearch has it, by its best epoch."""
    for trial in begun(submissions.context.history):
        if isinstance(trial, FinishedTrial) and (trial.value is not None or trial.state == "failed"):
            point = submissions.encode(trial.configuration)
            searcher.add_evaluated_point(point, trial.value, error=trial.state == "failed")


def points_to_begin_with(submissions: Submissions) -> list[Mapping[str, Any]]:
    """Return the configurations of unfinished trials in Ray's names: it suggests them first, in this order."""
    return [submissions.encode(trial.configuration) for trial in submissions.context.history.unfinished]
