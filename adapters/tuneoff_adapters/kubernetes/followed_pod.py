"""One pod as it is followed, of a trial or of a worker: what it and its log have told of it so far."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tuneoff.base.layout import EVENTS, POD, POD_WORKER
from tuneoff.base.terminal import shown_line
from tuneoff.base.tracebacks import FIRST_LINE
from tuneoff.errors import CheckpointError, ResultsError
from tuneoff.record.events.reader import SUFFIX, decode_lines, read_header
from tuneoff.record.events.schema import Event, Process
from tuneoff.record.events.stream import record_in
from tuneoff.record.events.writer import EventWriter
from tuneoff.run.trial.checkpoint import checkpoint_path
from tuneoff_adapters.kubernetes.checkpoint_lines import CheckpointLines
from tuneoff_adapters.kubernetes.clock_skew import PodClock
from tuneoff_adapters.kubernetes.endings import PodEnding
from tuneoff_adapters.kubernetes.layout import CONTAINER, EARLY_STOPPED, FAILED
from tuneoff_adapters.kubernetes.resources import Object, exit_of, has_ended, is_running, name_of

PODS = "pods"  # folder of the other lines, below the framework's
_HEADER = b'{"type":"process",'
_LONGEST_LINE = 2**16  # characters, from its end, in which a reason is looked for


class PodLog:
    """Takes the lines of a pod's training container, each once or, after a disconnect, again.

    `process` is known once its first event was seen, `last_line` is what the trial printed last, as a terminal would show it,
    `verdict` what the shell around its program said of its end last: EARLY_STOPPED or FAILED, "" if nothing. `is_broken`: events
    are missing, or one is not whole, so that none of those after them was stored.
    """

    def __init__(self, run_dir: Path, work_dir: Path, execution_id: str, name: str, trial_id: str | None) -> None:
        """`name`: of its files; `trial_id`: of the pod's one trial, None: it is a worker's, and has many."""
        self._run_dir, self._execution_id, self._trial_id = run_dir, execution_id, trial_id
        self._events = _LineFile(run_dir / EVENTS / f"{POD}-{name}{SUFFIX}")
        self._others = _LineFile(work_dir / PODS / f"{name}.log")
        self._checkpoint = CheckpointLines()
        self._next = 0  # sequence number
        self.process: Process | None = None
        self.last_line = self.verdict = ""
        self.is_broken = False
        self._is_in_traceback = False

    def take(self, line: bytes) -> Event | None:
        """Store a line; return its event if it is a new one: an event is told by its sequence number."""
        text, record = record_in(line, self._execution_id)
        # what the trial printed; the line end before each record makes empty lines
        if text:
            self._others.write(text)
        printed = text.decode(errors="replace")
        is_first = printed.startswith(FIRST_LINE)
        if is_first or self._is_in_traceback:  # its lines go to this process's standard error, which is the run's log, too
            sys.stderr.write(f"{printed}\n")
            self._is_in_traceback = is_first or not printed or printed[0].isspace()
        last = shown_line(printed[-_LONGEST_LINE:])
        verdict = next((ending for ending in (EARLY_STOPPED, FAILED) if last.endswith(ending)), "")
        if last := last.removesuffix(verdict).rstrip():
            self.last_line = last
        if last or verdict:
            self.verdict = verdict
        if record is None or self._checkpoint.add(record):
            return None
        event = self._event(record)
        if event is None or event.seq > self._next:
            self.is_broken = True
        if self.is_broken or event is None or event.seq < self._next:  # read again
            return None
        self._next = event.seq + 1
        if isinstance(event, Process):
            self.process = event
        self._events.write(record)
        return event

    def end(self) -> str | None:
        """Close the files, store the one trial's checkpoint, and return why that cannot be had, or None."""
        self._events.close()
        self._others.close()
        return None if self._trial_id is None else self.keep_checkpoint(self._trial_id)

    def keep_checkpoint(self, trial_id: str) -> str | None:
        """Store the checkpoint whose lines have come, if any, as a trial's; return why it cannot be had, or None."""
        checkpoint, self._checkpoint = self._checkpoint, CheckpointLines()
        if checkpoint.is_empty:
            return None
        try:
            content = checkpoint.content()
        except CheckpointError as error:
            return str(error)
        path = checkpoint_path(self._run_dir, trial_id)
        path.parent.mkdir(exist_ok=True)
        temporary = path.with_suffix(".tmp")
        temporary.write_bytes(content)
        os.replace(temporary, path)
        return None

    def _event(self, line: bytes) -> Event | None:
        """Return a record's event; None where it is not one of this trial's.

        Raises:
            ResultsError: the image's tuneoff writes another version of events.
        """
        if self.process is None:
            writer = "a worker" if self._trial_id is None else f"trial {self._trial_id}"
            header = read_header(line, f"the log of {writer}") if line.startswith(_HEADER) else None
            role = POD_WORKER if self._trial_id is None else POD
            is_ours = header is not None and (header.execution_id, header.role) == (self._execution_id, role)
            return header if is_ours else None
        try:
            (event,) = decode_lines(line + b"\n", "the pod's log", 1)
        except (ResultsError, ValueError):  # ValueError: not exactly one
            return None
        return event if self._trial_id in (None, getattr(event, "trial", self._trial_id)) else None


class _LineFile:
    """A file that is made with its first line and takes whole lines only."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    def write(self, line: bytes) -> None:
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("ab")
        self._file.write(line + b"\n")
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


@dataclass(slots=True, kw_only=True)
class FollowedPod:
    """Times are monotonic nanoseconds of this process, None: not yet."""

    name: str  # of its Job, which is Katib's name of the trial
    log: PodLog
    seen_ns: int  # the first sight of what it is made for
    pod: Object | None = None  # as last seen
    running_ns: int | None = None  # the training container was seen to run
    training_ended_ns: int | None = None
    gone_ns: int | None = None  # the pod has ended or was deleted
    is_log_open: bool = False
    was_log_read: bool = False  # in whole or not: no further line comes
    is_log_whole: bool = False
    lines: int = 0
    sign_ns: int | None = None  # its last sign of life
    is_recounting: bool = False
    asked_ns: int | None = None  # when its log could not be counted, last
    started_ns: int | None = None  # its trial, no earlier than it was
    epochs: int = 0
    killed_ns: int | None = None
    was_exit_written: bool = False

    @property
    def pod_name(self) -> str:
        return name_of(self.pod or {})

    def take_pod(self, kind: str, pod: Object, t: int) -> None:
        """Take in the pod as it was seen at `t`."""
        self.pod = pod
        if self.running_ns is None and is_running(pod, CONTAINER):
            self.running_ns = self.sign_ns = t
        if self.training_ended_ns is None and (exit_of(pod, CONTAINER) is not None or kind == "DELETED"):
            self.training_ended_ns = t
        if self.gone_ns is None and (has_ended(pod) or kind == "DELETED"):
            self.gone_ns = t

    def write_end(self, events: EventWriter, trial: str, ending: PodEnding, t: int, attempt: int = 1) -> None:
        """Write how its trial ended, which cannot say so itself."""
        before_ns = max(self.sign_ns or self.seen_ns, self.killed_ns or 0)
        extra = {"cause": ending.cause, "charged": ending.charged} if ending.cause is not None else {}
        events.write(
            "trial_ended",
            t=t,
            trial=trial,
            attempt=attempt,
            state=ending.state,
            epochs=self.epochs,
            by="coordinator",
            uncertainty_ns=max(0, t - before_ns),
            **extra,
        )

    def write_exit(self, events: EventWriter, pod_clock: PodClock) -> None:
        """Write when its process was seen to be gone; nothing where that was seen late, for then it is not known."""
        if self.log.process is None or self.training_ended_ns is None or self.was_exit_written:
            return
        self.was_exit_written = True
        ended = exit_of(self.pod or {}, CONTAINER)
        if ended is None or not pod_clock.is_late(ended.finished_at, self.training_ended_ns):
            events.write("process_exited", t=self.training_ended_ns, process=self.log.process.name)
