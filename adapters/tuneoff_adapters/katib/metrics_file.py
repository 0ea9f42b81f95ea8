"""The trial's report to Katib: one line per epoch in the file that the metrics collector reads.

A line is `2026-01-01T12:00:00.123456Z objective=0.3125`. Katib sorts reports by their time alone, so no two are equal, and a
value that is not finite would stop the whole experiment, so none is ever written.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tuneoff.run.trial.run_trial import Decision
from tuneoff_adapters.kubernetes.layout import OBJECTIVE

_GRAIN = timedelta(microseconds=1)  # what Katib's database keeps


def create_metrics_file(path: str) -> None:
    """Make the file: until it exists, the collector looks for it in a busy loop."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644))


def create_mark(metrics_file: str, shell: int) -> None:
    """Make the file in which the shell that Katib's webhook puts around the pod's program will note that training is complete.

    Where the collector stops a trial, it writes there first. If it made the file too, it would be root's, the shell (which is
    not root) could not overwrite it, and the collector would wait for that for ever. The text reads as a failure until then, to
    the collector and to the shell, which complains about an empty file.

    `shell`: its process number.
    """
    descriptor = os.open(Path(metrics_file).parent / f"{shell}.pid", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    os.fchmod(descriptor, 0o666)  # whoever the collector is
    os.write(descriptor, b"running\n")
    os.close(descriptor)


class FileReport:
    """Appends a line per epoch, and stops the trial after `last_epoch` (`pruner: scripted`); Katib's own stop is a SIGTERM."""

    def __init__(self, path: str, metric: str, last_epoch: int | None = None) -> None:
        self._metric, self._last_epoch = metric, last_epoch
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._latest: datetime | None = None

    def __call__(self, epoch: int, metrics: Mapping[str, float]) -> Decision:
        """Write the report; the trial's `report`.

        Raises:
            ValueError: the value is not finite.
        """
        now = datetime.now(UTC)
        self._latest = now if self._latest is None else max(now, self._latest + _GRAIN)
        os.write(self._file, report_line(self._latest, metrics[self._metric]).encode())  # one call: never half a line
        is_last = self._last_epoch is not None and epoch >= self._last_epoch
        return Decision.STOP if is_last else Decision.CONTINUE


def report_line(moment: datetime, value: float) -> str:
    """Return the line for a value reported at `moment` (UTC).

    Raises:
        ValueError: the value is not finite.
    """
    if not math.isfinite(value):
        raise ValueError(f"a report to Katib must be a finite number, but got {value!r}")
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z {OBJECTIVE}={float(value)!r}\n"
