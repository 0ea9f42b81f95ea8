"""What a trial's process used: CPU time, children included, and memory."""

from __future__ import annotations

import contextlib
import os
import resource
import time

from tuneoff.base.clock import NANOSECONDS

_CPUCLOCK_SCHED = 2  # of another process: clockid (~pid << 3) | 2, nanoseconds of all its threads (clock_getcpuclockid(3))


class CpuClock:
    """CPU time from now on, of this process and of the processes that it starts."""

    def __init__(self) -> None:
        self.started_ns = process_tree_cpu_ns()  # used before

    def used_ns(self) -> int:
        """Return the CPU time since the clock was made, in nanoseconds; about 2 us where the process has no children."""
        return max(0, process_tree_cpu_ns() - self.started_ns)


def process_tree_cpu_ns() -> int:
    """Return the CPU time of this process, of the children that it waited for, and of those that live or are zombies, in ns.

    A child's time only moves from the last part to the second when it is waited for, so differences of two readings are
    exact. Left out is what nobody in the tree waits for: a child whose parent ended first.
    """
    waited = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = time.process_time_ns() + round((waited.ru_utime + waited.ru_stime) * NANOSECONDS)
    if _has_children():
        total += sum(map(tree_cpu_ns, _children("self")))
    return total


def peak_rss_bytes() -> int:
    """Return the largest resident memory that this process had since it began its program.

    `ru_maxrss` would do, but on Linux it survives `exec`: a small process started by a large one has the large one's peak.
    """
    with contextlib.suppress(OSError, ValueError):  # no such file system here, or no such line
        descriptor = os.open("/proc/self/status", os.O_RDONLY | os.O_CLOEXEC)  # bare calls: half of what a file object takes
        try:
            text = os.read(descriptor, 8192)
        finally:
            os.close(descriptor)
        start = text.index(b"VmHWM:") + len(b"VmHWM:")
        return int(text[start : text.index(b"kB", start)]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _has_children() -> bool:
    """Tell by one system call, which reaps nobody, whether there is any child: hardly a trial has one."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _children(pid: int | str) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):  # it ended meanwhile, or there is no such file system
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found.extend(map(int, file.read().split()))
    return found


def tree_cpu_ns(pid: int) -> int:
    """Return the CPU time of a process, of those that it waited for, and of those below it, in ns; 0: it is gone."""
    total = 0
    with contextlib.suppress(OSError):  # it was reaped meanwhile: by the next reading it is among those waited for
        total = time.clock_gettime_ns((~pid << 3) | _CPUCLOCK_SCHED)
        with open(f"/proc/{pid}/stat") as file:
            text = file.read()
        waited_ticks = sum(map(int, text[text.rindex(")") + 2 :].split()[13:15]))
        total += waited_ticks * NANOSECONDS // os.sysconf("SC_CLK_TCK")
    return total + sum(map(tree_cpu_ns, _children(pid)))
