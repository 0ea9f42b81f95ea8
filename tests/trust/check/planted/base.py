"""What the planted adapters have in common: `serial`, with something done first in each of its workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from tuneoff.adapter import Capabilities
from tuneoff.base.targets import load_target
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.run.pool_adapter import Task
from tuneoff.run.trial import pool_worker
from tuneoff.run.trial.pool import Worker, WorkerPool
from tuneoff.run.trial.run_trial import Report, TrialOutcome, run_trial
from tuneoff.workload import Configuration
from tuneoff_adapters.serial import SerialAdapter

__all__ = ["Altered", "PlannedTrial", "Repeating", "Task"]


class PlannedTrial(NamedTuple):
    """A trial that a worker is to run."""

    context: TrialContext
    trial_id: str
    configuration: Configuration
    report: Report
    attempt: int

    def run(self) -> TrialOutcome:
        """Run it as `serial` does."""
        return run_trial(self.context, self.trial_id, self.configuration, self.report, attempt=self.attempt)


class Altered(SerialAdapter):
    """`serial` whose workers are prepared, and run each trial by `run`; there may be more or fewer than were asked for."""

    capabilities: ClassVar[Capabilities] = replace(SerialAdapter.capabilities, reports="every_epoch")  # some defects are in one
    more_workers: ClassVar[int] = 0

    @classmethod
    def prepare(cls, worker: Worker) -> None:
        """Change what this worker's process has."""

    @classmethod
    def run(cls, trial: PlannedTrial) -> TrialOutcome:
        """Run one trial."""
        return trial.run()

    def deploy(self) -> None:
        context, experiment = self.context, self.context.spec.experiment
        planted = next(cls for cls in type(self).__mro__ if cls.__module__.startswith(__package__ or "check"))
        self._pool = WorkerPool(
            context.trial_context,
            experiment.workers.count + min(self.more_workers, 0),
            f"{__name__}:work",
            (f"{planted.__module__}:{planted.__qualname__}", dict(experiment.stops)),
            load_target(experiment.workload.target).preload,
        )
        self._pool.count += max(self.more_workers, 0)  # a pool is not made with more workers than slots
        self._pool.start()


class Repeating(SerialAdapter):
    """`serial` that tries some trials again though their process lives."""

    def is_repeated(self, task: Task, outcome: TrialOutcome) -> bool:
        raise NotImplementedError

    def setup(self) -> None:
        super().setup()
        self._repeated: list[Task] = []

    def ended(self, task: Task, outcome: TrialOutcome) -> None:
        super().ended(task, outcome)
        if self.is_repeated(task, outcome):
            self._repeated.append(task._replace(attempt=task.attempt + 1))

    def _dispatch(self, worker: int, again: Task | None = None) -> Task | None:
        if again is None and self._repeated:
            again = self._repeated.pop()
        return super()._dispatch(worker, again)


def work(worker: Worker, target: str, stops: Mapping[str, int]) -> None:
    """Run in a worker process."""
    planted: type[Altered] = load_target(target)
    planted.prepare(worker)

    class Planted(Worker):
        def run(self, trial_id: str, configuration: Configuration, report: Report, **identity: Any) -> TrialOutcome:
            return planted.run(PlannedTrial(self.context, trial_id, configuration, report, **identity))

    pool_worker.work(Planted(worker.index, worker.context, worker.pipe), stops)
