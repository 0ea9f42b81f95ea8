"""Adapters that are worse than `serial` in one known way each; and, as a program, a trial whose process starts late.

`python -m known_answers SECONDS CONTEXT TRIAL CONFIGURATION ATTEMPT` sleeps, then is `python -m tuneoff.run.trial`.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from tuneoff.adapter import Adapter, Best, Capabilities
from tuneoff.base.identity import configuration_digest
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.run.trial.pool import Worker, WorkerPool
from tuneoff.run.trial.run_trial import Decision, Report, run_trial
from tuneoff.run.trial.trial_process import trial_process
from tuneoff_adapters.serial import SerialAdapter

REPORT_SECONDS = 0.05
START_SECONDS = 1.0
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


class ProcessPerTrial(SerialAdapter):
    """A new process for each trial: the honest one that `SlowStarts` is compared with."""

    start_seconds: ClassVar[float] = 0.0
    capabilities: ClassVar[Capabilities] = replace(SerialAdapter.capabilities, long_lived_workers=False)

    def deploy(self) -> None:
        self._running: dict[int, tuple[subprocess.Popen[bytes], str, Mapping[str, Any]]] = {}  # by pidfd

    def run_trials(self) -> None:
        proposals = self.propose()
        count = self.context.spec.experiment.workers.count
        while True:
            while len(self._running) < count and (proposal := next(proposals, None)) is not None:
                self._start(*proposal)
            if not self._running:
                return
            for ended in select.select(list(self._running), [], [])[0]:
                self._take(ended)

    def test(self, best: Best) -> None:
        Adapter.test(self, best)  # it has no pool whose checkpoints might be elsewhere

    def undeploy(self) -> None:
        for process, _, _ in getattr(self, "_running", {}).values():
            process.kill()
            process.wait()

    def _start(self, trial_id: str, configuration: Mapping[str, Any]) -> None:
        file = self.context.work_dir / f"{trial_id}.json"
        file.write_text(json.dumps(dict(configuration)))
        self.context.submitted(trial_id, configuration)
        arguments = self.context.trial_command(trial_id, file)[3:]
        environment = {**os.environ, "TUNEOFF_REPORTER": "known_answers:reporter", "TUNEOFF_FRAMEWORK_ID": trial_id}
        command = [sys.executable, "-m", "known_answers", str(self.start_seconds), *arguments]
        process = subprocess.Popen(command, env=environment)
        self._running[os.pidfd_open(process.pid)] = process, trial_id, configuration

    def _take(self, pidfd: int) -> None:
        process, trial_id, configuration = self._running.pop(pidfd)
        os.close(pidfd)
        if process.wait() != 0:
            raise RuntimeError(f"trial {trial_id} ended with exit code {process.returncode}")
        value = float(_value_file(self.context.trial_context, trial_id).read_text())
        if self._best is None or self.context.spec.experiment.objective.is_better(value, than=self._best[0]):
            self._best = (value, trial_id, configuration)


class SlowStarts(ProcessPerTrial):
    """Each process of a trial takes `START_SECONDS` more to start."""

    start_seconds = START_SECONDS


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


def reporter(context: TrialContext) -> Report:
    file = _value_file(context, os.environ["TUNEOFF_FRAMEWORK_ID"])

    def report(epoch: int, metrics: Mapping[str, float]) -> Decision:
        file.write_text(repr(metrics[context.metric]))
        return Decision.CONTINUE

    return report


def _value_file(context: TrialContext, trial_id: str) -> Path:
    return Path(context.run_dir) / "framework" / f"{trial_id}.value"


if __name__ == "__main__":
    time.sleep(float(sys.argv[1]))
    from tuneoff.run.trial.__main__ import main

    os._exit(main(sys.argv[2:]))
