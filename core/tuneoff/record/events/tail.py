"""Follow the event files of a running execution: what the supervisor polls several times a second."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from tuneoff.base.clock import boot_id
from tuneoff.base.files import open_regular
from tuneoff.base.layout import POD, POD_WORKER
from tuneoff.base.processes import is_alive
from tuneoff.errors import ResultsError
from tuneoff.record.events.reader import SUFFIX, decode_lines, read_header
from tuneoff.record.events.schema import Event, Process, TrialEnded

QUIET_POLLS = 20  # after so many polls without news, a file to which nobody writes any more is read once more and left alone
SETTLED_NS = 100_000_000  # a folder's modification time may be too coarse to show a file made just after a scan


@dataclass(slots=True)
class _Followed:
    path: str
    offset: int = 0
    lines: int = 0
    process: Process | None = None
    quiet: int = 0
    has_trial_ended: bool = False


class Tail:
    """Returns new events since the last call. Cost per call: one `stat` per living process's file, one read per grown file.

    A line that cannot be decoded is skipped and named in `problems`: a supervisor must outlive a bad line.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = str(folder)
        self.problems: list[str] = []
        self._active: dict[str, _Followed] = {}
        self._known: set[str] = set()
        self._scanned: tuple[int, int] = (-1, -1)  # the folder's modification time, when it was scanned (wall clock)

    def poll(self) -> list[tuple[Process, Event]]:
        """Return the new events, file by file in each file's own order; an empty list when there is nothing new."""
        self._discover()
        batch: list[tuple[Process, Event]] = []
        for followed in list(self._active.values()):
            is_last = followed.quiet >= QUIET_POLLS and _is_whole(followed)
            if self._read(followed, batch):
                followed.quiet = 0
            else:
                followed.quiet += 1
                if is_last:
                    del self._active[followed.path]
        return batch

    def _discover(self) -> None:
        try:
            modified, now = os.stat(self.folder).st_mtime_ns, time.time_ns()
            if modified == self._scanned[0] and self._scanned[1] - modified > SETTLED_NS:
                return
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    if entry.path not in self._known and entry.name.endswith(SUFFIX):
                        self._known.add(entry.path)
                        self._active[entry.path] = _Followed(entry.path)
        except FileNotFoundError:
            return  # no process of the run has written yet
        except OSError as error:
            problem = f"{self.folder}: {error.strerror}"
            self.problems += [problem] if problem not in self.problems else []
            return
        self._scanned = (modified, now)

    def _read(self, followed: _Followed, batch: list[tuple[Process, Event]]) -> bool:
        """Append the file's new events to `batch`; tell whether it grew by a whole line."""
        try:
            if os.lstat(followed.path).st_size <= followed.offset:
                return False
            with open_regular(Path(followed.path)) as file:
                file.seek(followed.offset)
                data = file.read()
        except OSError as error:
            self._give_up(followed, f"{followed.path}: {error.strerror}")
            return False
        data = data[: data.rfind(b"\n") + 1]
        if not data:
            return False
        followed.offset += len(data)
        if followed.process is None:
            try:
                followed.process = read_header(data[: data.index(b"\n")], followed.path)
            except ResultsError as error:
                self._give_up(followed, str(error))
                return False
        process = followed.process
        for event in self._events(followed, data):
            followed.has_trial_ended |= isinstance(event, TrialEnded)
            batch.append((process, event))
        return True

    def _events(self, followed: _Followed, data: bytes) -> list[Event]:
        first = followed.lines + 1
        lines = data.splitlines(keepends=True)
        followed.lines += len(lines)
        try:
            return decode_lines(data, followed.path, first)
        except ResultsError:
            events: list[Event] = []
            for number, line in enumerate(lines, first):
                try:
                    events.extend(decode_lines(line, followed.path, number))
                except ResultsError as error:
                    self.problems.append(str(error))
            return events

    def _give_up(self, followed: _Followed, problem: str) -> None:
        self.problems.append(problem)
        self._active.pop(followed.path, None)


def _is_whole(followed: _Followed) -> bool:
    """Tell whether nothing more can come: a pod's file ends with its trial, that of a process of this host with the process."""
    process = followed.process
    if process is not None and process.role == POD:
        return followed.has_trial_ended
    if process is None or process.role == POD_WORKER or process.boot_id == "unknown" or process.boot_id != boot_id():
        return False  # that cannot be known
    return not is_alive(process.pid)
