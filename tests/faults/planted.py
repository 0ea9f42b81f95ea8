"""Adapters with a planted defect: one is silently wrong, one hangs, one lets no report go wrong. `tuneoff faults` finds each."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping

from tuneoff.run.pool_adapter import Task
from tuneoff.run.trial import pool_worker
from tuneoff.run.trial.pool import Worker, WorkerPool
from tuneoff.run.trial.run_trial import TrialOutcome
from tuneoff_adapters.serial import SerialAdapter
from tuneoff_faults.faulty import Faulty


def work(worker: Worker, stops: Mapping[str, int]) -> None:
    """Run trials with metrics that are cleaned before core sees them: what is not finite becomes the best value that there is."""
    validate = Faulty.validate

    def cleaned(workload: Faulty) -> Mapping[str, float]:
        return {name: value if math.isfinite(value) else 1.0 for name, value in validate(workload).items()}

    Faulty.validate = cleaned  # type: ignore[method-assign,assignment]
    pool_worker.work(worker, stops)


def work_without_hook(worker: Worker, stops: Mapping[str, int]) -> None:
    """Run trials as after a rename of what core asks a workload for its reports by."""
    del Faulty.to_report
    pool_worker.work(worker, stops)


class CleansMetrics(SerialAdapter):
    """Hands the framework, and core, other metrics than the training gave."""

    work = "work"

    def deploy(self) -> None:
        context = self.context
        target = f"{__name__}:{self.work}"
        self._pool = WorkerPool(context.trial_context, context.spec.experiment.workers.count, target, ({},), ())
        self._pool.start()


class AsksForNoReport(CleansMetrics):
    """Takes what the training gave for what it wants reported."""

    work = "work_without_hook"


class WaitsForEver(SerialAdapter):
    """Waits for ever once a trial has failed."""

    def ended(self, task: Task, outcome: TrialOutcome) -> None:
        if outcome.state == "failed":
            threading.Event().wait()
        super().ended(task, outcome)
