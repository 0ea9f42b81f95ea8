"""Defects in the steps of a run."""

from __future__ import annotations

from trust.check.planted.base import Task
from tuneoff.errors import StepError
from tuneoff.trust.check.fault_injection import PlantedFailure
from tuneoff_adapters.serial import SerialAdapter


class EntersAgain(SerialAdapter):
    """Announces a step by itself, so that it is entered twice."""

    def collect_metrics(self) -> None:
        self.context.events.write("step_started", step="metrics")


class FailsInMetrics(SerialAdapter):
    """Fails in its last step but one, after random search."""

    def collect_metrics(self) -> None:
        if self.context.spec.experiment.sampler.name == "random":
            raise StepError("the framework has no metrics of its sampler")


class SubmitsInDeploy(SerialAdapter):
    """Hands its first trial over before `setup`."""

    def deploy(self) -> None:
        super().deploy()
        super().setup()
        self._early: Task | None = None
        self._early = self._dispatch(0)

    def setup(self) -> None:
        pass

    def _dispatch(self, worker: int, again: Task | None = None) -> Task | None:
        if worker == 0 and self._early is not None:
            early, self._early = self._early, None
            return early
        return super()._dispatch(worker, again)


class SwallowsFailures(SerialAdapter):
    """Takes whatever goes wrong among the trials for their end."""

    def run_trials(self) -> None:
        try:
            super().run_trials()
        except PlantedFailure:
            return
