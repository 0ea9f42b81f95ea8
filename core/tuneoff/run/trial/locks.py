"""Locks and counters across processes: `flock` on small files, which die with their holder."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType

from tuneoff.base import clock


class Slots:
    """The `count` places of a run. A process holds a slot by an exclusive lock on its file; a killed one frees it."""

    def __init__(self, run_dir: Path | str, count: int) -> None:
        folder = Path(run_dir) / "slots"
        folder.mkdir(parents=True, exist_ok=True)
        self._files = [os.open(folder / str(i), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644) for i in range(count)]
        self._reserved: int | None = None

    def reserve(self, preferred: int = 0) -> None:
        """Take a slot for the next `take` if one is free; never waits."""
        self._reserved = self._try(preferred)

    def take(self, timeout_seconds: float = 60.0, preferred: int = 0) -> tuple[int, int]:
        """Return (slot, nanoseconds waited): the reserved slot, else the preferred one if it is free, else the lowest free one.

        Raises:
            TimeoutError: no slot became free: more than `workers.count` trials overlap.
        """
        reserved, self._reserved = self._reserved, None
        if reserved is not None:
            return reserved, 0
        started = clock.monotonic_ns()
        was_free = True  # at the first look: whatever time that took on a busy machine, nobody was waited for
        while (slot := self._try(preferred)) is None:
            was_free = False
            if clock.monotonic_ns() - started > timeout_seconds * clock.NANOSECONDS:
                raise TimeoutError(f"no free slot of {len(self._files)} within {timeout_seconds:g} s")
            time.sleep(0.002)
        return slot, 0 if was_free else clock.monotonic_ns() - started

    def _try(self, preferred: int) -> int | None:
        for slot in (preferred, *(i for i in range(len(self._files)) if i != preferred)):
            try:
                fcntl.flock(self._files[slot], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            return slot
        return None

    def free(self, slot: int) -> None:
        fcntl.flock(self._files[slot], fcntl.LOCK_UN)

    def close(self) -> None:
        for descriptor in self._files:
            os.close(descriptor)


class Tickets:
    """A budget shared by processes: at most `limit` tickets are ever taken, whatever the callers do.

    The file holds one line per ticket, the monotonic time of its taking, so the first line is when the budget was first used.
    """

    _LINE = 21  # 20 digits and a newline

    def __init__(self, path: Path | str, limit: int | None) -> None:
        self.limit = limit
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def take(self) -> int | None:
        """Return the number of the ticket taken, counted from 0, or None where none is left."""
        if self.limit is None:
            return 0
        with Locked(self._fd):
            number = os.fstat(self._fd).st_size // self._LINE
            if number >= self.limit:
                return None
            os.pwrite(self._fd, b"%020d\n" % clock.monotonic_ns(), number * self._LINE)
        return number

    @property
    def taken(self) -> int:
        return os.fstat(self._fd).st_size // self._LINE

    @property
    def first_ns(self) -> int | None:
        """Return when the first ticket was taken (monotonic nanoseconds), or None."""
        line = os.pread(self._fd, self._LINE, 0)
        return int(line) if len(line) == self._LINE else None

    def close(self) -> None:
        os.close(self._fd)


class Locked:
    """Holds an exclusive flock for a block."""

    def __init__(self, descriptor: int) -> None:
        self._fd = descriptor

    def __enter__(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_UN)
