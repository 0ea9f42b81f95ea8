"""What Linux tells in /proc of the host's and of a process's use, read by hand: cheap enough for several looks a second."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tuneoff.base.clock import NANOSECONDS

PROC = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")  # per second
_CPUCLOCK_SCHED = 2  # the clock of another process: clock_getcpuclockid(3)
_FIRST_BYTES, _MOST_BYTES = 1 << 16, 1 << 22  # of /proc/stat, which is long where there are many interrupts


class Stat(NamedTuple):
    """The fields of /proc/<pid>/stat that matter here; CPU times have the grain of a clock tick, 10 ms."""

    name: str
    state: bytes
    parent: int
    session: int
    cpu_ns: int
    children_cpu_ns: int  # of children that it has waited for, and of theirs
    started_ns: int  # as in `process` events
    rss_bytes: int


def parse_stat(text: bytes) -> Stat | None:
    """Return what a stat line says, or None where it is none (the process is gone)."""
    opened, closed = text.find(b"("), text.rfind(b")")
    fields = text[closed + 2 :].split()
    if opened < 0 or len(fields) < 22:
        return None
    return Stat(
        name=text[opened + 1 : closed].decode(errors="replace"),
        state=fields[0],
        parent=int(fields[1]),
        session=int(fields[3]),
        cpu_ns=(int(fields[11]) + int(fields[12])) * NANOSECONDS // TICKS,
        children_cpu_ns=(int(fields[13]) + int(fields[14])) * NANOSECONDS // TICKS,
        started_ns=int(fields[19]) * NANOSECONDS // TICKS,
        rss_bytes=int(fields[21]) * PAGE,
    )


def process_cpu_ns(pid: int) -> int | None:
    """Return the CPU time of a process, its threads included, in ns; None if it is gone, or the system cannot tell.

    Takes a tenth of what its stat file takes, and is finer: a clock tick is 10 ms.
    """
    try:
        return time.clock_gettime_ns((~pid << 3) | _CPUCLOCK_SCHED)
    except OSError:
        return None


def read_stat(pid: int | str, proc: str = str(PROC)) -> Stat | None:
    """Return a process's stat, or None if there is no such process."""
    try:
        with open(f"{proc}/{pid}/stat", "rb", buffering=0) as file:
            return parse_stat(file.read())
    except OSError:  # gone, before or while it was read
        return None


def carries(pid: int | str, mark: bytes, proc: str = str(PROC)) -> bool:
    """Tell whether a process's environment, as it was at its start, has the line `mark` (NAME=value)."""
    try:
        with open(f"{proc}/{pid}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:  # gone, or somebody else's
        return False


@dataclass(frozen=True, slots=True)
class HostTimes:
    """CPU time of the host since its start, all processors together."""

    busy_ns: int  # steal left out
    steal_ns: int
    forks: int | None  # processes and threads made so far: while it stays, there is no new process
    usable_busy_ns: int | None = None  # of the processors that were asked for; None: all


class HostClock:
    """Reads /proc/stat again and again."""

    def __init__(self, proc: Path = PROC, usable: Collection[int] = ()) -> None:
        """Open it. `usable`: processors whose time is told apart too.

        Raises:
            OSError: there is none.
        """
        self._usable = frozenset(b"cpu%d" % processor for processor in usable)
        self._descriptor = os.open(proc / "stat", os.O_RDONLY | os.O_CLOEXEC)
        self._size = _FIRST_BYTES

    def read(self) -> HostTimes:
        """Return the times now.

        Raises:
            OSError: it cannot be read.
        """
        text = os.pread(self._descriptor, self._size, 0)
        while len(text) == self._size and self._size < _MOST_BYTES:
            self._size *= 2
            text = os.pread(self._descriptor, self._size, 0)
        busy_ns, steal_ns = _busy_and_steal_ns(text.split(b"\n", 1)[0])
        lines = text.split(b"\n") if self._usable else ()
        usable = [line for line in lines if line.partition(b" ")[0] in self._usable]
        at = text.find(b"\nprocesses ")
        forks = int(text[at + 11 : text.find(b"\n", at + 11)]) if at >= 0 else None
        return HostTimes(
            busy_ns=busy_ns,
            steal_ns=steal_ns,
            forks=forks,
            usable_busy_ns=sum(_busy_and_steal_ns(line)[0] for line in usable) if usable else None,
        )

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _busy_and_steal_ns(line: bytes) -> tuple[int, int]:
    """Return the time that a line of /proc/stat counts as busy, and what a hypervisor took."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(field) for field in line.split()[1:9])
    busy = user + nice + system + irq + softirq  # a guest's time is in user and nice already
    return busy * NANOSECONDS // TICKS, steal * NANOSECONDS // TICKS
