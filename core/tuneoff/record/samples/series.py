"""Energy of one domain over time: cumulative energy, linear between samples, unknown outside of them."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

Interval = tuple[int, int]  # start, end in ns since the run's start
NEAREST_NS = 1_000_000_000  # over so long the power at an end is a mean: counters are read in steps


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

    def reaching(self, start_ns: int, end_ns: int) -> EnergySeries:
        """Return the series from `start_ns` to `end_ns` at the least: outside of its samples, the power of the nearest second.

        The same series where it reaches that far already, and where it has no two samples.
        """
        times, joules = self.times, self.joules
        if len(times) < 2 or (times[0] <= start_ns and times[-1] >= end_ns):
            return self
        found = [(t, energy - joules[0]) for t, energy in zip(times, joules, strict=True)]
        if times[-1] < end_ns:
            before = times[max(0, bisect.bisect_right(times, times[-1] - NEAREST_NS, hi=len(times) - 1) - 1)]
            watts = self.energy(before, times[-1]) / (times[-1] - before)
            found.append((end_ns, found[-1][1] + watts * (end_ns - times[-1])))
        if times[0] > start_ns:
            after = times[min(len(times) - 1, bisect.bisect_left(times, times[0] + NEAREST_NS))]
            missing = self.energy(times[0], after) / (after - times[0]) * (times[0] - start_ns)
            found = [(start_ns, 0.0), *((t, energy + missing) for t, energy in found)]
        return EnergySeries([t for t, _ in found], [energy for _, energy in found])

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
