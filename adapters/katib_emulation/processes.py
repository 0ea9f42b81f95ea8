"""The processes of containers: each a group that is started, watched and killed as one.

Nothing runs between fork and exec (no `preexec_fn`): Python then starts the process by vfork, which is safe beside other threads
and three times faster.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
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

    def wait(self, seconds: float | None) -> bool:
        """Wait until the command has ended, `wake` was called, or the time is over.

        Returns whether the command has ended (it is a zombie until `finish`, so its number is not used again).
        """
        ready = readable(seconds, self._ended, self._bell)
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
        pids, of_group = map(int, filter(str.isdigit, os.listdir("/proc"))), [b"%d" % self.pid]
        members = [pid for pid in pids if _read(pid, "stat").rpartition(b")")[2].split()[2:3] == of_group]
        trackers = [pid for pid in members if b"resource_tracker import main" in _read(pid, "cmdline")]
        if trackers:
            _end(set(members) - set(trackers), signal.SIGKILL)
            _wait_for(trackers, _TRACKER_SECONDS)
        self.signal(signal.SIGKILL)

    def terminate(self, grace: float) -> None:
        """Send SIGTERM to what the command started, or else to itself, and SIGKILL to all that is left after `grace` seconds.

        The command comes last: a shell that dies before its children would leave them to others, and could not tell their end.
        """
        until = time.monotonic() + grace
        below = descendants(self.pid)
        _end(below, signal.SIGTERM)
        _wait_for(below, grace)
        if not below or not readable(_SHELL_SECONDS, self._ended):
            self.signal(signal.SIGTERM)  # it goes on with its next command
        readable(until - time.monotonic(), self._ended)
        self.kill()

    def finish(self) -> int:
        """Kill what is left of the group, collect the command, and return its exit code (128 + number for a signal)."""
        self.kill()
        readable(None, self._ended)
        with self._lock:
            code = self._process.wait()
            self._is_finished = True
        os.close(self._ended)
        os.close(self._bell)
        return code if code >= 0 else 128 - code

    def exceeds(self, limit: int) -> bool:
        """Tell whether the group uses more than `limit` bytes of memory: resident memory, with shared pages divided among their
        users (which is asked for only if it would matter, as it takes long)."""
        members = [self.pid, *descendants(self.pid)]
        resident = {pid: int((_read(pid, "statm").split() or [b"0", b"0"])[1]) * _PAGE for pid in members}
        if sum(resident.values()) <= limit:
            return False
        used = 0
        for pid, size in resident.items():
            shares = [line.split()[1] for line in _read(pid, "smaps_rollup").splitlines() if line.startswith(b"Pss:")]
            used += int(shares[0]) * 1024 if shares and int(shares[0]) else size
        return used > limit


def readable(seconds: float | None, *descriptors: int) -> set[int]:
    """Return the descriptors that are readable, as soon as there is one, or at the end of the time."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(None if seconds is None else max(0.0, seconds) * 1000)}


def descendants(pid: int) -> list[int]:
    """Return all processes below a process."""
    below = children_of(pid)
    for child in below:  # which grows meanwhile
        below += children_of(child)
    return below


def children_of(pid: int) -> list[int]:
    """Return the direct children of a process."""
    children: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            children += map(int, _read(pid, f"task/{task}/children").split())
    return children


def _read(pid: int, file: str) -> bytes:
    """Return a file of a process; nothing where it is gone, or not ours to read."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{file}").read_bytes()
    return b""


def _end(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _wait_for(pids: Sequence[int], seconds: float) -> None:
    """Wait until the processes have ended, at most so long together."""
    until = time.monotonic() + seconds
    for pid in pids:
        with contextlib.suppress(OSError):
            descriptor = os.pidfd_open(pid)
            readable(until - time.monotonic(), descriptor)
            os.close(descriptor)
