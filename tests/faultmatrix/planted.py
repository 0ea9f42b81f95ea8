"""Adapters with a planted defect: one is silently wrong, one hangs. `tuneoff faults` must find both."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import replace

from tuneoff.trial.pool import Message, Worker, WorkerPool
from tuneoff.trial.run_trial import TrialOutcome
from tuneoff_adapters import serial
from tuneoff_adapters.serial import SerialAdapter
from tuneoff_workloads.faulty import Faulty


class Cleaned(Faulty):
    """What is not finite becomes the best value that there is."""

    def validate(self) -> Mapping[str, float]:
        return {name: value if math.isfinite(value) else 1.0 for name, value in super().validate().items()}


def work(worker: Worker, stops: Mapping[str, int]) -> None:
    """Run trials with metrics that were cleaned before core sees them."""
    cleaned = replace(worker.context, workload="faultmatrix.planted:Cleaned")
    serial.work(replace(worker, context=cleaned), stops)


class CleansMetrics(SerialAdapter):
    """Hands the framework, and core, other metrics than the training gave."""

    def deploy(self) -> None:
        context = self.context
        self._pool = WorkerPool(context.trial_context, context.spec.experiment.workers.count, f"{__name__}:work", ({},), ())
        self._pool.start()


class WaitsForEver(SerialAdapter):
    """Waits for ever once a trial has failed."""

    def _note(self, task: serial._Task, message: Message) -> None:
        outcome: TrialOutcome = message.content
        if outcome.state == "failed":
            threading.Event().wait()
        super()._note(task, message)
