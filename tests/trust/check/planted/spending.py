"""Defects in keeping the budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from trust.check.planted.base import Altered, PlannedTrial, Task
from tuneoff.run.trial.pool import Worker
from tuneoff.run.trial.run_trial import TrialOutcome
from tuneoff.run.trial.trial_process import TrialBudget, trial_process
from tuneoff_adapters.serial import SerialAdapter


class OneTrialMore(SerialAdapter):
    """Overspends by one trial."""

    def propose(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        configuration: Mapping[str, Any] = {}
        for trial_id, configuration in super().propose():
            yield trial_id, configuration
        if self.context.spec.experiment.sampler.name == "random":
            yield "one-more", configuration


class OneEpochMore(Altered):
    """Trains every trial for one epoch more."""

    @classmethod
    def prepare(cls, worker: Worker) -> None:
        process = trial_process(worker.context)
        process.context = replace(process.context, epochs=process.context.epochs + 1)


class PrunesEarlyEnds(Altered):
    """Takes a trial that reported fewer epochs than planned for a stopped one."""

    @classmethod
    def run(cls, trial: PlannedTrial) -> TrialOutcome:
        outcome = super().run(trial)
        return outcome if outcome.epochs >= trial.context.epochs else replace(outcome, state="pruned")


class GoesOnAfterTheTime(SerialAdapter):
    """Never looks at the clock."""

    def setup(self) -> None:
        super().setup()
        self._budget = _Endless(self.context.trial_context)


class _Endless(TrialBudget):
    def is_used_up(self) -> bool:
        return False


class GoesOnAfterTheGoal(SerialAdapter):
    """Never looks whether the goal is met."""

    def setup(self) -> None:
        super().setup()
        if self.context.spec.experiment.objective.stop:
            self._budget = _Endless(self.context.trial_context)


class SaysThatItStops(SerialAdapter):
    """Declares means of its own, and uses none."""

    capabilities = replace(SerialAdapter.capabilities, stops_at_goal="itself")


class StopsAtTheFirst(SaysThatItStops):
    """Takes any value for one that meets the goal."""

    def propose(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for trial_id, configuration in super().propose():
            if self._is_met:
                return
            yield trial_id, configuration

    _is_met = False

    def ended(self, task: Task, outcome: TrialOutcome) -> None:
        super().ended(task, outcome)
        if self.context.spec.experiment.objective.stop and not self._is_met:
            self._is_met = True
            self.context.events.write("goal_met", trial=task.trial_id, by="itself")
