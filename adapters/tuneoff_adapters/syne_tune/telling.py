"""Tell Syne Tune's scheduler what the run's earlier executions did, through the calls that a tuner makes; imports Syne Tune."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from syne_tune.backend.trial_status import Trial

from tuneoff.experiment.translation import Translation
from tuneoff.record.history import FinishedTrial, History, begun
from tuneoff_adapters.syne_tune.reporter import OBJECTIVE, TIME_ATTRIBUTE

FIRST_NUMBER = 1_000_000  # of trials of earlier executions: the tuner counts its own from 0


class Past:
    """The finished trials of a continued run, each of which the scheduler is told once."""

    def __init__(self, scheduler: Any, history: History, translation: Translation) -> None:
        self._scheduler, self._translation = scheduler, translation
        self._finished = {trial.trial_id: trial for trial in begun(history) if isinstance(trial, FinishedTrial)}
        self._told = 0

    def tell_all(self) -> None:
        """Tell every finished trial, in the order of their numbers."""
        for name in self._finished:
            self.tell(name)

    def tell(self, trial_id: str) -> bool:
        """Tell a trial as it went, if it is a finished one, and return whether it is."""
        finished = self._finished.get(trial_id)
        if finished is None:
            return False
        number = FIRST_NUMBER + self._told
        self._told += 1
        trial = Trial(number, self._translation.encode(finished.configuration), datetime.now(UTC))
        self._scheduler.on_trial_add(trial)
        result: dict[str, Any] = {}
        for epoch, value in finished.values:
            if value is not None:
                result = {TIME_ATTRIBUTE: epoch, OBJECTIVE: value}
                self._scheduler.on_trial_result(trial, result)
        if finished.state == "failed" or not result:
            self._scheduler.on_trial_error(trial)
        elif finished.state == "pruned":
            self._scheduler.on_trial_remove(trial)
        else:
            self._scheduler.on_trial_complete(trial, result)
        return True
