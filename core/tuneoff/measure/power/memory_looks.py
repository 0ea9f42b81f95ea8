"""Proportional memory (PSS) of the run's large processes: looked at rarely, as the process waits meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterable

from tuneoff.base import clock
from tuneoff.measure.power.procfs import Stat, pss_bytes

LARGE_BYTES = 50_000_000  # of RSS; a smaller process hardly shares more than its interpreter
EVERY_NS = 5 * clock.NANOSECONDS  # of one process, at most
MOST_SHARE = 0.002  # of one core, for all processes together
SETTLED_NS = 2 * clock.NANOSECONDS  # a process so young is still importing


class MemoryLooks:
    """Looks at one process at a time, at the one that waits for longest, and not before the looks so far have paid off."""

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._next_ns = 0
        self._looked: dict[tuple[int, int], int] = {}  # when each process was last looked at

    def look(self, now_ns: int, processes: Iterable[tuple[int, Stat]]) -> tuple[int, int] | None:
        """Return (pid, PSS in bytes) of a process that is due, or None."""
        if now_ns < self._next_ns:
            return None
        due = [
            (self._looked.get((pid, stat.started_ns), 0), pid, stat)
            for pid, stat in processes
            if stat.rss_bytes >= LARGE_BYTES and now_ns - stat.started_ns >= SETTLED_NS
        ]
        looked_ns, pid, stat = min(due, default=(now_ns, 0, None), key=lambda item: item[:2])
        if stat is None or (looked_ns and now_ns - looked_ns < EVERY_NS):
            return None
        before = time.thread_time_ns()
        found = pss_bytes(pid, self._proc)
        cost_ns = time.thread_time_ns() - before
        self._next_ns = now_ns + int(cost_ns / MOST_SHARE)
        self._looked = {(pid, stat.started_ns): self._looked.get((pid, stat.started_ns), 0) for _, pid, stat in due}
        self._looked[pid, stat.started_ns] = now_ns
        return None if found is None else (pid, found)
