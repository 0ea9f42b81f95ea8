"""Defects in stops, failures and retries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from trust.check.planted.base import Altered, PlannedTrial, Repeating, Task
from tuneoff.adapter import Capabilities
from tuneoff.errors import StepError
from tuneoff.run.trial.faults import Retries
from tuneoff.run.trial.run_trial import Decision, TrialOutcome
from tuneoff_adapters.serial import SerialAdapter


class _Deciding(Altered):
    """Decides otherwise than the script."""

    @staticmethod
    def redecide(trial: PlannedTrial, epoch: int, decision: Decision) -> Decision:
        raise NotImplementedError

    @classmethod
    def run(cls, trial: PlannedTrial) -> TrialOutcome:
        return trial._replace(report=lambda epoch, metrics: cls.redecide(trial, epoch, trial.report(epoch, metrics))).run()


class IgnoresStops(_Deciding):
    """Trains on where a trial has to stop."""

    @staticmethod
    def redecide(trial: PlannedTrial, epoch: int, decision: Decision) -> Decision:
        return Decision.CONTINUE


class StopsAnother(_Deciding):
    """Stops a bad trial after three epochs, which the script leaves alone."""

    @staticmethod
    def redecide(trial: PlannedTrial, epoch: int, decision: Decision) -> Decision:
        return Decision.STOP if trial.configuration.get("level") == 0.2 and epoch == 3 else decision


class StopsWhatIsTriedAgain(_Deciding):
    """Stops second attempts at their first report."""

    @staticmethod
    def redecide(trial: PlannedTrial, epoch: int, decision: Decision) -> Decision:
        return Decision.STOP if trial.attempt > 1 else decision


class ForgetsFailedTrials(SerialAdapter):
    """Leaves out what is known to raise."""

    def propose(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        return (proposal for proposal in super().propose() if proposal[1].get("act") != "raise")


class FailsWithADrawnTrial(SerialAdapter):
    """Fails the run because a trial failed, and offers no sampler `fixed` by which a failing trial could be given."""

    capabilities: ClassVar[Capabilities] = replace(
        SerialAdapter.capabilities, samplers={"random": SerialAdapter.capabilities.samplers["random"]}
    )

    def setup(self) -> None:
        super().setup()
        self._has_failed = False

    def ended(self, task: Task, outcome: TrialOutcome) -> None:
        super().ended(task, outcome)
        self._has_failed |= outcome.state == "failed"

    def collect_metrics(self) -> None:
        if self._has_failed:
            raise StepError("trials failed")


class OneRetryMore(SerialAdapter):
    """Retries once more than was asked for."""

    def setup(self) -> None:
        super().setup()
        retries = self.context.spec.experiment.failures.retries
        self._retries = Retries(self.context.trial_context, retries + 1 if retries else 0)


class RetriesWhatRaised(Repeating):
    """Tries a trial again whose workload raised."""

    def is_repeated(self, task: Task, outcome: TrialOutcome) -> bool:
        retries = self.context.spec.experiment.failures.retries
        return outcome.state == "failed" and task[2] <= retries


class BeginsCompletedAgain(Repeating):
    """Tries a trial again that completed."""

    def is_repeated(self, task: Task, outcome: TrialOutcome) -> bool:
        return outcome.state == "completed" and task[2] == 1 and self.context.spec.experiment.sampler.name == "random"
