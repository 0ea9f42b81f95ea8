"""CPU time of the processes that train: what their attempts used while they were busy, and the rest of it, the overhead.

A process's CPU time is one curve: the readings that it took itself at the ends of its attempts' segments, and what the
sampler saw where there are none (after its last attempt, in an attempt that was killed).
"""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tuneoff.measure.attribution.pieces import TimePiece
from tuneoff.measure.spans import AttemptKey, busy, started_attempts
from tuneoff.record.run_record import AttemptRecord, RunRecord

Reading = tuple[int, int]  # time in ns since the run's start, CPU time in ns
Holder = tuple[int, int, AttemptKey]  # from, to, whose CPU time it is
LONGEST_GAP_NS = 10_000_000_000  # between looks: what lies in a longer gap was not sampled


@dataclass(slots=True)
class CpuUse:
    """CPU time of the processes that train, by process name where it is not an attempt's."""

    attempts: dict[AttemptKey, list[TimePiece]] = field(default_factory=dict)  # an attempt that is not there is unknown
    around: dict[str, list[TimePiece]] = field(default_factory=dict)  # process start, waits in report, between attempts, exit
    unknown: list[AttemptKey] = field(default_factory=list)
    is_around_known: bool = True  # every process said what it had used before its attempts
    extrapolated: int = 0  # attempts without a last reading, extended at their own mean rate


@dataclass(frozen=True, slots=True)
class Sampled:
    """What the sampler saw of the host where it ran: when it looked, and the CPU time of each process that trains."""

    host: str = ""
    times: Sequence[int] = ()
    readings: Mapping[str, list[Reading]] = field(default_factory=dict)  # by process name
    longest_gap_ns: int = LONGEST_GAP_NS

    def saw(self, start_ns: int, end_ns: int) -> bool:
        """Tell whether the sampler looked often enough in an interval to have seen what was there."""
        first = bisect.bisect_right(self.times, start_ns) - 1
        last = bisect.bisect_left(self.times, end_ns)
        if first < 0 or last == len(self.times):
            return False
        return all(after - before <= self.longest_gap_ns for before, after in itertools.pairwise(self.times[first : last + 1]))


def attempts_by_process(run: RunRecord) -> dict[str, list[tuple[AttemptKey, AttemptRecord]]]:
    """Return the started attempts of each process, by its name, in order of their starts."""
    by_process: dict[str, list[tuple[AttemptKey, AttemptRecord]]] = defaultdict(list)
    for key, attempt in started_attempts(run):
        by_process[attempt.process or f"unknown:{key[0]}:{key[1]}"].append((key, attempt))
    for items in by_process.values():
        items.sort(key=lambda item: (item[1].started_ns, item[1].ended_ns, item[0]))
    return dict(by_process)


def cpu_use(run: RunRecord, sampled: Sampled, *, is_modelled: bool = False) -> CpuUse:
    """Return the CPU time of the processes that train.

    Between a process's own readings its use follows the samples; by the model, whose power is the same all the time, it is even.
    An attempt that ended without a reading, and that no sampler saw, is unknown; by the model it goes on at its mean rate.
    """
    use = CpuUse()
    for name, items in attempts_by_process(run).items():
        curve = _CpuCurve(name, sampled, is_modelled)
        for key, attempt in items:
            curve.add(key, attempt)
            use.attempts[key] = []
        curve.finish()
        use.unknown.extend(curve.unknown)
        use.is_around_known &= curve.is_whole
        use.extrapolated += curve.extrapolated
        holders = [(start, end, key) for key, attempt in items for start, end in busy(attempt)]
        use.around[name] = _share_out(curve.points, holders, use.attempts)
        for key in curve.unknown:
            use.attempts.pop(key, None)
    for process in run.without_attempt:
        curve = _CpuCurve(process.process, sampled, is_modelled)
        curve.begin(process.started_ns)
        curve.finish()
        use.around[process.process] = _share_out(curve.points, [], use.attempts)
    return use


class _CpuCurve:
    """CPU time of one process over time: it never falls."""

    def __init__(self, name: str, sampled: Sampled, is_modelled: bool) -> None:
        self.points: list[Reading] = []
        self.unknown: list[AttemptKey] = []
        self.is_whole = True
        self.extrapolated = 0
        self._sampled = sampled
        self._readings = sampled.readings.get(name, [])
        self._is_here = name.rpartition(":")[0].rpartition(":")[0] == sampled.host and bool(sampled.times)
        self._is_modelled = is_modelled

    def add(self, key: AttemptKey, attempt: AttemptRecord) -> None:
        """Add the readings of the next attempt."""
        started, ended = attempt.started_ns, attempt.ended_ns
        assert started is not None
        assert ended is not None
        if not self.points and attempt.process_started_ns is not None:
            self.begin(min(attempt.process_started_ns, started - 1))
        base = attempt.process_cpu_ns
        if base is None:
            self.is_whole = False
            base = max(self.points[-1][1] if self.points else 0, self._seen(started))
        put = self._put
        put(started, base)
        last = started, 0
        for epoch in attempt.epochs:
            if epoch.cpu_ns is not None:
                last = epoch.ended_ns, epoch.cpu_ns
                put(epoch.ended_ns, base + epoch.cpu_ns)
            if epoch.reported_ns is not None and epoch.reported_cpu_ns is not None:
                last = epoch.reported_ns, epoch.reported_cpu_ns
                put(epoch.reported_ns, base + epoch.reported_cpu_ns)
        if attempt.cpu_ns is not None:
            put(ended, base + attempt.cpu_ns)
            return
        segments = busy(attempt)  # it could not read its clock at its end
        if not segments or segments[-1][1] <= last[0]:
            return  # it was not busy any more
        if self._readings or (self._is_here and self._sampled.saw(last[0], ended)):
            first, after = (bisect.bisect_right(self._readings, (t, 1 << 62)) for t in (last[0], ended))
            for t, cpu in self._readings[first:after]:
                put(t, cpu)
            # the process was killed: what is seen last, when it is already gone, it used before
            is_last = after == len(self._readings) - 1
            put(ended, self._readings[-1][1] if is_last else self._seen(ended))
        elif self._is_modelled and last[0] > segments[0][0]:
            self.extrapolated += 1
            rate = last[1] / (last[0] - segments[0][0])
            put(ended, base + round(last[1] + rate * (ended - last[0])))
        else:
            self.unknown.append(key)

    def begin(self, started_ns: int) -> None:
        """Start at 0 where the process started."""
        self._put(started_ns, 0)

    def finish(self) -> None:
        """Add what the sampler saw after the last reading: the exit of the process."""
        last = self.points[-1][0]
        for t, cpu in self._readings[bisect.bisect_right(self._readings, (last, 1 << 62)) :]:
            self._put(t, cpu)

    def _seen(self, t: int) -> int:
        """Return the CPU time at a moment by the samples, even between them; 0 before the first."""
        readings = self._readings
        index = bisect.bisect_right(readings, (t, 1 << 62))
        if index == 0:
            return 0
        if index == len(readings):
            return readings[-1][1]
        (before, low), (after, high) = readings[index - 1], readings[index]
        return low + (high - low) * (t - before) // (after - before)

    def _put(self, t: int, cpu: int) -> None:
        points = self.points
        if not points:
            points.append((t, cpu))
            return
        last, least = points[-1]
        cpu = max(cpu, least)
        if t <= last:
            points[-1] = last, cpu
            return
        if self._readings and not self._is_modelled and cpu > least:
            self._follow(last, least, t, cpu)
        points.append((t, cpu))

    def _follow(self, start: int, low: int, end: int, high: int) -> None:
        """Add what the sampler saw inside an interval, scaled to the readings at its ends."""
        seen_low, seen_high = self._seen(start), self._seen(end)
        if seen_high <= seen_low:
            return
        first = bisect.bisect_right(self._readings, (start, 1 << 62))
        for t, seen in self._readings[first:]:
            if t >= end:
                break
            self.points.append((t, low + (high - low) * (seen - seen_low) // (seen_high - seen_low)))


def _share_out(
    points: Sequence[Reading], holders: list[Holder], by_attempt: dict[AttemptKey, list[TimePiece]]
) -> list[TimePiece]:
    """Add to `by_attempt` what each holder used of a curve, and return the rest; holders that overlap share evenly."""
    holders.sort()
    cuts: list[tuple[int, int, tuple[AttemptKey, ...]]] = [(start, end, (key,)) for start, end, key in holders]  # disjoint
    if any(before[1] > after[0] for before, after in itertools.pairwise(holders)):
        moves = sorted([(start, 1, key) for start, _, key in holders] + [(end, 0, key) for _, end, key in holders])
        holding: dict[AttemptKey, None] = {}
        cuts, begin = [], moves[0][0]
        for when, begins, key in moves:
            if when > begin and holding:
                cuts.append((begin, when, tuple(holding)))
            begin = when
            if begins:
                holding[key] = None
            else:
                holding.pop(key, None)
    rest: list[TimePiece] = []
    index = 0
    keys: tuple[AttemptKey, ...]
    for (start, low), (end, high) in itertools.pairwise(points):
        used, span = high - low, end - start
        at = start
        while at < end:
            while index < len(cuts) and cuts[index][1] <= at:
                index += 1
            if index == len(cuts) or cuts[index][0] >= end:
                until, keys = end, ()
            elif cuts[index][0] > at:
                until, keys = cuts[index][0], ()
            else:
                until, keys = min(end, cuts[index][1]), cuts[index][2]
            if used:
                cpu = used if until - at == span else used * (until - at) / span
                if not keys:
                    rest.append(TimePiece(at, until, cpu))
                for key in keys:
                    by_attempt[key].append(TimePiece(at, until, cpu / len(keys)))
            at = until
    return rest
