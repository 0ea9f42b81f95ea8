"""Clocks: monotonic readings for durations, one wall-clock anchor per process to align hosts."""

from __future__ import annotations

import functools
import os
import time
from dataclasses import dataclass
from pathlib import Path

NANOSECONDS = 1_000_000_000
MILLISECONDS = 1e3  # in a second
SLEPT_NS = 100_000_000  # a shorter suspension is a difference between two readings of clocks
TICK_NS = NANOSECONDS // os.sysconf("SC_CLK_TCK")  # the grain of a process's start
monotonic_ns = time.monotonic_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A monotonic and a wall-clock reading of the same moment; `width_ns` bounds the error of the pairing."""

    monotonic_ns: int
    wall_ns: int
    width_ns: int


def anchor(tries: int = 10) -> Anchor:
    """Return the narrowest of `tries` bracketed readings (monotonic, wall, monotonic)."""
    best: Anchor | None = None
    for _ in range(tries):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        if best is None or after - before < best.width_ns:
            best = Anchor(monotonic_ns=(before + after) // 2, wall_ns=wall, width_ns=after - before)
    assert best is not None
    return best


def slept_ns() -> int:
    """Return how long the machine has been suspended since its start, while monotonic time stood still."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()


@functools.cache
def boot_id() -> str:
    """Return the kernel's boot id: monotonic readings are comparable only where it is equal."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"
