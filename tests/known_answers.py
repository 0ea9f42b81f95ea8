"""Adapters that are worse than `serial` in one known way each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from tuneoff.base.identity import configuration_digest
from tuneoff.run.trial.pool import Worker, WorkerPool
from tuneoff.run.trial.run_trial import Decision, Report, run_trial
from tuneoff.run.trial.trial_process import trial_process
from tuneoff_adapters.serial import SerialAdapter

REPORT_SECONDS = 0.05
EXIT_CODE = 7


class _Altered(SerialAdapter):
    """`serial` with another function in its workers: it gets the worker and what the serial one gets."""

    target: ClassVar[str]

    def deploy(self) -> None:
        experiment = self.context.spec.experiment
        stops = dict(experiment.stops)
        self._pool = WorkerPool(self.context.trial_context, experiment.workers.count, self.target, (stops,))
        self._pool.start()


class SlowReports(_Altered):
    """Each report takes `REPORT_SECONDS` more."""

    target = "known_answers:report_slowly"


class Crashing(_Altered):
    """Each tenth trial's process ends while it reports its last epoch but one."""

    target = "known_answers:crash"


class StopsIgnored(_Altered):
    """Decides to stop as the script says, and trains on."""

    target = "known_answers:ignore_stops"


def report_slowly(worker: Worker, stops: Mapping[str, int]) -> None:
    def report(epoch: int, metrics: Mapping[str, float]) -> Decision:
        time.sleep(REPORT_SECONDS)
        return Decision.CONTINUE

    _work(worker, lambda trial_id, configuration: report)


def crash(worker: Worker, stops: Mapping[str, int]) -> None:
    last = worker.context.epochs - 1

    def make(trial_id: str, configuration: Mapping[str, Any]) -> Report:
        is_crashing = int(trial_id.removeprefix("t")) % 10 == 4

        def report(epoch: int, metrics: Mapping[str, float]) -> Decision:
            if is_crashing and epoch == last:
                os._exit(EXIT_CODE)
            return Decision.CONTINUE

        return report

    _work(worker, make)


def ignore_stops(worker: Worker, stops: Mapping[str, int]) -> None:
    events = trial_process(worker.context).events

    def make(trial_id: str, configuration: Mapping[str, Any]) -> Report:
        stop = stops.get(configuration_digest(configuration))

        def report(epoch: int, metrics: Mapping[str, float]) -> Decision:
            if epoch == stop:
                events.write("stop_decided", trial=trial_id, epoch=epoch)
            return Decision.CONTINUE

        return report

    _work(worker, make)


def _work(worker: Worker, make_report: Callable[[str, Mapping[str, Any]], Report]) -> None:
    while (task := worker.pipe.recv()) is not None:
        trial_id, configuration, attempt = task
        report = make_report(trial_id, configuration)
        worker.pipe.send(run_trial(worker.context, trial_id, configuration, report, attempt=attempt))
