"""Energy of one domain over time: cumulative energy, linear between samples, unknown outside of them."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

Interval = tuple[int, int]  # start, end in ns since the run's start


@dataclass(frozen=True, slots=True)
class EnergySeries:
    """Sample times (ns, strictly increasing) and the energy (J, never falling) used since the first of them."""

    times: Sequence[int]
    joules: Sequence[float]

    def __post_init__(self) -> None:
        if len(self.times) != len(self.joules):
            raise ValueError(f"one energy per time is needed, but got {len(self.times)} times and {len(self.joules)} energies")

    def energy(self, start_ns: int, end_ns: int) -> float:
        """Return the joules of an interval; what lies outside of the samples counts nothing (see `coverage`)."""
        return self.at(end_ns) - self.at(start_ns)

    def at(self, t: int) -> float:
        """Return the joules used up to a moment, linear between samples."""
        times, joules = self.times, self.joules
        if not times or t <= times[0]:
            return 0.0
        if t >= times[-1]:
            return joules[-1] - joules[0]
        index = bisect.bisect_right(times, t)
        before, after = times[index - 1], times[index]
        return joules[index - 1] - joules[0] + (joules[index] - joules[index - 1]) * (t - before) / (after - before)

    def cuts(self, start_ns: int, end_ns: int) -> Sequence[int]:
        """Return the sample times strictly inside an interval: between two cuts the power is constant."""
        return self.times[bisect.bisect_right(self.times, start_ns) : bisect.bisect_left(self.times, end_ns)]

    def coverage(self, start_ns: int, end_ns: int, longest_gap_ns: int) -> float:
        """Return the share of an interval, in [0, 1], that lies between samples at most `longest_gap_ns` apart."""
        if end_ns <= start_ns:
            return 0.0
        first = max(0, bisect.bisect_right(self.times, start_ns) - 1)
        covered = 0
        for index in range(first, len(self.times) - 1):
            before, after = self.times[index], self.times[index + 1]
            if before >= end_ns:
                break
            if after - before <= longest_gap_ns:
                covered += max(0, min(after, end_ns) - max(before, start_ns))
        return covered / (end_ns - start_ns)
