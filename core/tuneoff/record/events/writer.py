"""Append events: one `os.write` of one JSON line on an O_APPEND descriptor, so a SIGKILL costs at most that line."""

from __future__ import annotations

import functools
import json
import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuneoff.base import clock
from tuneoff.base.files import PLAIN_NAME, take_back
from tuneoff.base.layout import CLOCKS, EVENTS
from tuneoff.base.processes import process_started_ns
from tuneoff.record.events.stream import framed

_compiled = functools.cache(re.compile)  # at the first trial: most processes submit none
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode


class EventWriter:
    """Writes one process's events to its own file. Not imported by readers; needs only the standard library.

    An adapter's coordinator has `context.events`, a process that runs trials `trial_process(trial_context).events`: there a
    framework that decides in its workers writes `events.write("stop_decided", trial=trial_id, epoch=epoch)`.

    Keep in step with `schema.py`: a test reads back one event of each type.
    """

    def __init__(self, run_dir: Path | str, execution_id: str, role: str, *, to_stdout: bool = False) -> None:
        self.pid = os.getpid()
        self._seq = 0
        self._begin = framed(b"", execution_id) if to_stdout else b""
        self._lock = threading.Lock()
        if to_stdout:
            self.path, self._fd = None, os.dup(1)
            os.dup2(2, 1)  # whatever else is printed from here on must not get between the events
        else:
            folder = Path(run_dir) / EVENTS
            folder.mkdir(parents=True, exist_ok=True)
            self.path = folder / f"{role}-{self.pid}-{clock.monotonic_ns()}.jsonl"
            self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        anchor, slept_ns = _measured(run_dir) or clock.anchor(), clock.slept_ns()
        self.write(
            "process",
            version=2,
            role=role,
            pid=self.pid,
            host=os.uname().nodename,
            boot_id=clock.boot_id(),
            execution_id=execution_id,
            anchor_monotonic_ns=anchor.monotonic_ns,
            anchor_wall_ns=anchor.wall_ns,
            anchor_width_ns=anchor.width_ns,
            process_started_ns=process_started_ns(),
            **({"slept_ns": slept_ns} if slept_ns > clock.SLEPT_NS else {}),
        )

    def write(self, type: str, *, t: int | None = None, **fields: Any) -> int:
        """Append one event of `type` (see schema.py) and return its monotonic reading `t` in nanoseconds."""
        with self._lock:
            if t is None:
                t = clock.monotonic_ns()
            text = _encode({"type": type, "seq": self._seq, "t": t, **fields})
            # a lone surrogate (a file name in an error's text) has no bytes, and a reader refuses its JSON escape
            line = self._begin + text.encode("utf-8", "xmlcharrefreplace") + b"\n"
            if (written := os.write(self._fd, line)) != len(line):  # as `append_line`, but each event would pay for its call
                take_back(self._fd, written)
            self._seq += 1
        return t

    def sync(self) -> None:
        """Force the file to disk; once, at the end of a run."""
        os.fsync(self._fd)

    def close(self) -> None:
        os.close(self._fd)

    # The events that more than one caller writes

    def submitted(self, trial: str, configuration: Mapping[str, Any], framework_id: str | None = None, attempt: int = 1) -> int:
        """Announce a trial.

        Raises:
            ValueError: its name cannot be a file's.
        """
        if _compiled(PLAIN_NAME).match(trial) is None:
            raise ValueError(f"a trial's name must match {PLAIN_NAME}, as t00000 does, but got {trial!r}")
        return self.write(
            "trial_submitted", trial=trial, configuration=dict(configuration), framework_id=framework_id, attempt=attempt
        )

    def flag(self, name: str, text: str) -> int:
        return self.write("flag", name=name, text=text)


def _measured(run_dir: Path | str) -> clock.Anchor | None:
    """Return this host's monotonic clock on the coordinator's scale of wall-clock time, where that measured it: the wall clocks
    of two hosts may differ by any amount, and be set meanwhile."""
    try:
        ahead_ns, width_ns = map(int, (Path(run_dir) / CLOCKS / clock.boot_id()).read_text().split())
    except FileNotFoundError:
        return None
    now = clock.monotonic_ns()
    return clock.Anchor(monotonic_ns=now, wall_ns=now + ahead_ns, width_ns=width_ns)
