"""The metrics collector of one pod: applies the rules of early stopping while the file grows, and reports the metrics at the end.

As Katib's sidecar (v0.19), without its delays: it looks when the file has changed, and ends when the training has.
"""

from __future__ import annotations

import contextlib
import os
import signal
from datetime import UTC, datetime
from pathlib import Path

from katib_emulation.node.file_watch import FileWatch
from katib_emulation.node.metrics import CollectorError, StopRules
from katib_emulation.node.processes import ProcessGroup
from katib_emulation.node.webhook import COMPLETED, EARLY_STOPPED, CollectorSettings
from katib_emulation.observations import Observations

EXIT_CODE_OF_FAILURE = 255


class Collector:
    """One trial's collector. Used by the one thread that runs the pod."""

    def __init__(self, settings: CollectorSettings, metrics_file: Path, log: Path, reports: Observations) -> None:
        """`metrics_file`: the file on this machine; `log`: of the collector's container."""
        self.is_stopping = False
        self._settings = settings
        self._metrics_file = metrics_file
        self._log = log
        self._reports = reports
        self._failure: str | None = None
        self._rules = StopRules(settings.rules, settings.format.names[0], settings.maximize) if settings.rules else None
        self._watch = FileWatch(metrics_file.parent) if self._rules else None
        self._offset = 0

    @property
    def trial(self) -> str:
        """The name of the trial whose metrics these are."""
        return self._settings.trial

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What becomes readable when `look` has something to see."""
        watch = self._watch
        return (watch.descriptor,) if watch is not None and watch.descriptor is not None else ()

    @property
    def poll_seconds(self) -> float | None:
        """How long may pass between two calls of `look`; None: until a descriptor is readable."""
        return self._watch.poll_seconds if self._watch is not None else None

    def look(self, training: ProcessGroup) -> None:
        """Apply the rules to the new lines; when all are met, stop the training and report what it has."""
        if self._watch is None or self._rules is None:
            return
        self._watch.drain()
        try:
            for line in self._new_lines():
                for name, value in self._settings.format.values(line, self._rules.names):
                    self._rules.report(name, value)
                if not self._rules.names:
                    self._stop(training)
                    break
        except (CollectorError, OSError) as error:
            self._fail(str(error))

    def finish(self, training: ProcessGroup) -> int:
        """After the training has ended: report its metrics if it completed; return the collector's exit code.

        A trial that was stopped has reported already, but the shell's mark has to say that it completed too.
        """
        try:
            if self._failure is None:
                self._check_mark(training)
                if not self.is_stopping:
                    self._report()
        except (CollectorError, OSError) as error:
            self._fail(str(error))
        finally:
            self._stop_looking()
        return 0 if self._failure is None else EXIT_CODE_OF_FAILURE

    def is_waiting(self, training: ProcessGroup) -> bool:
        """Tell whether the mark still says that the trial is being stopped: then Katib's collector waits for the shell to write
        that it completed, for ever where the shell has ended without."""
        try:
            return self._failure is None and self._mark(training).read_text().strip() == EARLY_STOPPED
        except OSError:
            return False

    def _stop(self, training: ProcessGroup) -> None:
        self._say("I", "Training container is early stopped")
        self._mark(training).write_text(EARLY_STOPPED)
        children = training.children()
        if len(children) != 1:
            raise CollectorError(f"Multiple children processes are not supported. Children processes: {children}")
        try:
            os.kill(children[0], signal.SIGTERM)
        except ProcessLookupError as error:
            raise CollectorError(f"Unable to terminate child process {children[0]}, error: {error}") from error
        self.is_stopping = True
        self._report()
        self._stop_looking()

    def _report(self) -> None:
        try:
            content = self._metrics_file.read_bytes().decode(errors="replace")
        except OSError as error:
            text = f"open {self._settings.path}: {(error.strerror or str(error)).lower()}"
            raise CollectorError(f"Failed to collect logs: failed to open the file: {text}") from error
        found = self._settings.format.observations(content)
        self._reports.report(self._settings.trial, found)
        self._say("I", f"Metrics reported: {len(found)}")

    def _check_mark(self, training: ProcessGroup) -> None:
        mark = self._mark(training)
        try:
            content = mark.read_text().strip()
        except OSError as error:
            seen = f"{self._settings.directory}/{mark.name} for pid {training.pid}"
            why = f"training container is failed. Unable to read file {seen}, error: {(error.strerror or str(error)).lower()}"
            raise CollectorError(f"Failed to wait for worker container: {why}") from error
        if content != COMPLETED:
            raise CollectorError(
                f"Failed to wait for worker container: unable to find marker: {COMPLETED} in contents: {content}"
            )

    def _new_lines(self) -> list[str]:
        """Return the complete lines that were added since the last call."""
        try:
            with self._metrics_file.open("rb") as file:
                file.seek(self._offset)
                content = file.read()
        except FileNotFoundError:
            return []
        complete = content[: content.rfind(b"\n") + 1]
        self._offset += len(complete)
        return complete.decode(errors="replace").split("\n")[:-1]

    def _mark(self, training: ProcessGroup) -> Path:
        return self._metrics_file.parent / f"{training.pid}.pid"

    def _fail(self, message: str) -> None:
        self._failure = message
        self._stop_looking()
        self._say("F", message)

    def _stop_looking(self) -> None:
        if self._watch is not None:
            self._watch.__exit__(None, None, None)
            self._watch = None

    def _say(self, severity: str, message: str) -> None:
        with contextlib.suppress(OSError), self._log.open("a") as log:  # the disk is full: the exit code says the rest
            log.write(f"{severity}{datetime.now(UTC):%m%d %H:%M:%S.%f}      14 main.go:142] {message}\n")
