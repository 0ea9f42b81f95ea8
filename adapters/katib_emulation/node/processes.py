"""One container's processes: a process group that is started, watched and killed as one.

Nothing runs between fork and exec (no `preexec_fn`): Python then starts the process by vfork, which is safe beside other threads
and three times faster. That processes die with the server is the guardian's part (`guardian.py`).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TRACKER_SECONDS = 1.0
_SHELL_SECONDS = 0.5  # a shell whose only command has ended needs no longer to end itself


class ProcessGroup:
    """A started command and everything that it starts in turn. One thread waits; any thread may signal and wake it."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path, log: Path) -> None:
        """Start the command in `folder`, with output and errors appended to `log`.

        Raises:
            OSError: it cannot be started.
        """
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                env=dict(environment),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._ended = os.pidfd_open(self.pid)
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._lock = threading.Lock()
        self._is_finished = False

    def wake(self) -> None:
        """Let `wait` return before its time. Without effect after `finish`."""
        with self._lock:
            if not self._is_finished:
                os.eventfd_write(self._bell, 1)

    def wait(self, seconds: float | None, *others: int) -> bool:
        """Wait until the command has ended, `wake` was called, one of the other descriptors is readable, or the time is over.

        Returns whether the command has ended (it is a zombie until `finish`, so its number is not used again).
        """
        ready = _readable(seconds, self._ended, self._bell, *others)
        if self._bell in ready:
            os.eventfd_read(self._bell)
        return self._ended in ready

    def signal(self, number: int) -> None:
        """Signal the whole group, from any thread. Without effect after `finish`."""
        with self._lock, contextlib.suppress(ProcessLookupError):
            if not self._is_finished:
                os.killpg(self.pid, number)

    def kill(self) -> None:
        """Kill the whole group, from any thread.

        With a container goes its shared memory: here Python's resource trackers, where there are any, have a moment to remove it.
        """
        if self._is_finished:
            return
        members = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _group(pid) == self.pid]
        trackers = [pid for pid in members if _is_resource_tracker(pid)]
        descriptors = _descriptors(trackers)
        for pid in members if trackers else ():
            if pid not in trackers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for descriptor in descriptors:
            _readable(_TRACKER_SECONDS, descriptor)
            os.close(descriptor)
        self.signal(signal.SIGKILL)

    def terminate(self, grace: float) -> None:
        """Send SIGTERM to what the command started, or else to itself, and SIGKILL to all that is left after `grace` seconds.

        The command comes last: a shell that dies before its children would leave them to others, and could not tell their end.
        """
        until = time.monotonic() + grace
        below = descendants(self.pid)
        descriptors = _descriptors(below)
        try:
            for pid in below:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            if not below:
                self.signal(signal.SIGTERM)
            for descriptor in descriptors:
                _readable(until - time.monotonic(), descriptor)
            if below and not _readable(_SHELL_SECONDS, self._ended):
                self.signal(signal.SIGTERM)  # it goes on with its next command
            _readable(until - time.monotonic(), self._ended)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        self.kill()

    def finish(self) -> int:
        """Kill what is left of the group, collect the command, and return its exit code (128 + number for a signal)."""
        self.kill()
        _readable(None, self._ended)
        with self._lock:
            code = self._process.wait()
            self._is_finished = True
        os.close(self._ended)
        os.close(self._bell)
        return code if code >= 0 else 128 - code

    def children(self) -> list[int]:
        """Return the direct children of the command."""
        return children(self.pid)

    def exceeds(self, limit: int) -> bool:
        """Tell whether the group uses more than `limit` bytes of memory: resident memory, with shared pages divided among their
        users (which is asked for only if it would matter, as it takes long)."""
        members = [self.pid, *descendants(self.pid)]
        return sum(map(_rss_bytes, members)) > limit and sum(map(_pss_bytes, members)) > limit


def children(pid: int) -> list[int]:
    """Return the direct children of a process; none if it is gone."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as file:
                found.extend(map(int, file.read().split()))
    return found


def descendants(pid: int) -> list[int]:
    """Return all processes below a process."""
    found: list[int] = []
    to_visit = [pid]
    while to_visit:
        below = children(to_visit.pop())
        found += below
        to_visit += below
    return found


def _readable(seconds: float | None, *descriptors: int) -> set[int]:
    """Return the descriptors that are readable, as soon as there is one, or at the end of the time."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(None if seconds is None else max(0.0, seconds) * 1000)}


def _group(pid: int) -> int:
    """Return the process group of a process; 0: it is gone."""
    with contextlib.suppress(OSError):
        return os.getpgid(pid)
    return 0


def _is_resource_tracker(pid: int) -> bool:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return b"resource_tracker import main" in file.read()
    return False


def _descriptors(pids: Sequence[int]) -> list[int]:
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            found.append(os.pidfd_open(pid))
    return found


def _rss_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * _PAGE
    except OSError:
        return 0


def _pss_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            for line in file:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass  # no such file, or not ours to read
    return _rss_bytes(pid)
