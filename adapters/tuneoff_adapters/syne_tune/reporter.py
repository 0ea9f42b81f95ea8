"""The trial's side: report by printing the line that Syne Tune reads, without the 0.4 s of importing it in every trial."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping

from tuneoff.experiment.trial_context import TrialContext
from tuneoff.run.trial.run_trial import Decision

TAG = "tune-metric"
TIME_ATTRIBUTE = "epoch"
OBJECTIVE = "objective"  # what the objective is called in Syne Tune, whatever the workload calls it
TARGET = f"{__name__}:PrintedReport"  # what TUNEOFF_REPORTER names


class PrintedReport:
    """Prints one line per epoch to the standard output that the process was started with, and never stops the trial.

    Syne Tune ends the whole tuning on a line that it cannot read, so from here on whatever else the trial prints to
    standard output goes to standard error.
    """

    def __init__(self, context: TrialContext) -> None:
        self._metric = context.metric
        self._output = os.dup(1)
        os.dup2(2, 1)
        os.write(self._output, b"\n")  # ends what Python itself may have printed
        self._started = time.perf_counter()
        self._count = 0

    def __call__(self, epoch: int, metrics: Mapping[str, float]) -> Decision:
        """Print the report; Syne Tune decides later and ends a trial by SIGKILL."""
        seconds = time.perf_counter() - self._started
        line = report_line(epoch, metrics[self._metric], time.time(), seconds, self._count)
        self._count += 1
        os.write(self._output, line.encode())  # one call: a reader never sees half a line
        return Decision.CONTINUE


def report_line(epoch: int, value: float, timestamp: float, worker_seconds: float, count: int) -> str:
    """Return the line of Syne Tune's documented protocol.

    `timestamp` is in seconds of the wall clock (results are sorted by it), `worker_seconds` since the reporter's start,
    `count` the number of earlier reports.
    """
    report = {
        TIME_ATTRIBUTE: epoch,
        OBJECTIVE: value,
        "st_worker_timestamp": timestamp,
        "st_worker_time": worker_seconds,
        "st_worker_iter": count,
    }
    return f"[{TAG}]: {json.dumps(report)}\n"
