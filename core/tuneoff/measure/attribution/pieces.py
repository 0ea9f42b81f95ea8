"""Pieces of energy, of CPU time and of slots over a run, and the account of energy that every method of attribution gives."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tuneoff.measure.spans import AttemptKey, Interval
from tuneoff.record.metric_value import Kind, MetricValue, metric_value, missing, weakest
from tuneoff.record.samples.schema import Coefficients, EnergySeries

JOULES_PER_KWH = 3.6e6


class EnergyPiece(NamedTuple):
    """Energy that was used evenly over an interval (ns since the run's start)."""

    start_ns: int
    end_ns: int
    joules: float


class TimePiece(NamedTuple):
    """CPU time, or time of a slot, that was used evenly over an interval; where k share a slot each has 1/k of its time."""

    start_ns: int
    end_ns: int
    time_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyAccount:
    """A run's energy in pieces, in order of time; pieces may overlap. Empty with a `reason` where nothing is known.

    `attempts`: the busy segments of each attempt. `parts` of the job besides them: `overhead` (of slots), `idle` (slots within
    the slot window), `outside` (slots, neither busy nor overhead, outside of the slot window), `services` (all processes of the
    framework that do not train, and the test). Not of the job: `others` (tuneoff's own supervision, processes that are not the
    run's, idle power of cores that no slot reserves). `node`: what a meter saw of the node as a whole.
    A part or attempt that is not there is unknown, never 0: `reasons` says why, and `job_reason` why the job as a whole is
    unknown.
    """

    kind: Kind = "estimated"  # of what is attributed: derived (attributed from a counter) or estimated
    source: str = ""
    reason: str | None = None
    n_samples: int = 0
    coverage: float | None = None
    node_kind: Kind = "estimated"
    node_source: str = ""
    attempts: Mapping[AttemptKey, Sequence[EnergyPiece]] = field(default_factory=dict)
    parts: Mapping[str, Sequence[EnergyPiece]] = field(default_factory=dict)
    node: Sequence[EnergyPiece] | None = None  # None: the model meters none
    reasons: Mapping[str, str] = field(default_factory=dict)  # of missing parts; `trials` of missing attempts; `node`
    is_assumed: bool = False  # that the slots of an accelerator, and nobody else, use it, evenly
    job_reason: str | None = None
    model: Coefficients | None = None  # by which this energy was estimated
    use_kind: Kind = "derived"  # of CPU seconds; estimated where an attempt without a last reading was extended
    cpu_seconds: float | None = None  # of the job; None where a part's are unknown
    core_seconds: float | None = None  # reserved by the slots, busy or not
    test_cpu_seconds: float | None = None  # of the job, in its part test; None where there was none too
    other_cpu: EnergySeries | None = None  # CPU seconds of other programs on the processors that the run could use

    def value(
        self, value: float | None, unit: str, reason: str | None = None, *, by: str = "", n_samples: int | None = None
    ) -> MetricValue:
        """Return what rests on this energy, or null with the account's reason, else `reason`.

        `by`: what was declared that it rests on too, e.g. an intensity.
        """
        kind = weakest(self.kind, "declared") if by else self.kind
        reason = self.reason or reason
        if reason is not None or value is None:
            return missing(unit, reason or "", kind=kind, source=self.source or "samples")
        count = n_samples if n_samples is not None else self.n_samples
        source = f"{self.source}; {by}" if by else self.source
        return metric_value(value, unit, kind=kind, source=source, n_samples=count, coverage=self.coverage)


def joules(pieces: Sequence[EnergyPiece], within: Interval | None = None) -> float:
    """Return the energy of pieces, all of it or what lies in an interval."""
    if within is None:
        return sum(piece.joules for piece in pieces)
    total = 0.0
    for start, end, energy in pieces:
        overlap = min(end, within[1]) - max(start, within[0])
        if overlap > 0:
            total += energy if overlap == end - start else energy * overlap / (end - start)
    return total


def split(pieces: Iterable[EnergyPiece], windows: Sequence[Interval]) -> list[list[EnergyPiece]]:
    """Return what of the pieces lies in each of disjoint windows in order of time; a piece across an edge is cut there."""
    inside: list[list[EnergyPiece]] = [[] for _ in windows]
    starts = [window[0] for window in windows]
    for piece in pieces:
        start, end, energy = piece
        index = max(0, bisect.bisect_right(starts, start) - 1)
        if index < len(windows) and windows[index][0] <= start and end <= windows[index][1]:
            inside[index].append(piece)
            continue
        while index < len(windows) and windows[index][0] < end:
            begin, finish = max(start, windows[index][0]), min(end, windows[index][1])
            if finish > begin:
                inside[index].append(EnergyPiece(begin, finish, energy * (finish - begin) / (end - start)))
            index += 1
    return inside


def seconds(pieces: Iterable[TimePiece]) -> float:
    """Return the seconds of pieces: CPU seconds, or those of slots."""
    return sum(piece.time_ns for piece in pieces) / 1e9


def clipped(pieces: Iterable[TimePiece], window: Interval) -> list[TimePiece]:
    """Return what of the pieces lies in a window."""
    first, last = window
    inside = []
    for piece in pieces:
        start, end, time_ns = piece
        if start >= first and end <= last:
            inside.append(piece)
        elif start < last and end > first:
            begin, finish = max(start, first), min(end, last)
            inside.append(TimePiece(begin, finish, time_ns * (finish - begin) / (end - start)))
    return inside


def merged(*groups: Mapping[AttemptKey, Sequence[EnergyPiece]]) -> dict[AttemptKey, list[EnergyPiece]]:
    """Return the pieces of each attempt together, in order of time."""
    together: dict[AttemptKey, list[EnergyPiece]] = {}
    for group in groups:
        for key, pieces in group.items():
            together.setdefault(key, []).extend(pieces)
    for pieces in together.values():
        pieces.sort()
    return together
