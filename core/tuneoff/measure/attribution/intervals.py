"""Pieces of energy and of CPU time over a run, and what a method of attribution gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tuneoff.measure.segments import Interval
from tuneoff.record.samples.series import EnergySeries

AttemptKey = tuple[str, int]  # trial id, position in `TrialRecord.attempts`


class EnergyPiece(NamedTuple):
    """Energy that was used evenly over an interval (ns since the run's start)."""

    start_ns: int
    end_ns: int
    joules: float


class CpuPiece(NamedTuple):
    """CPU time that was used evenly over an interval."""

    start_ns: int
    end_ns: int
    cpu_ns: float


class Share(NamedTuple):
    """An interval of a slot's time, of which a share (1 where nobody else has it) is meant."""

    start_ns: int
    end_ns: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributed:
    """What a method found; what is missing in `attempts` and `parts` is unknown, for the `reasons` of its part or `trials`."""

    attempts: dict[AttemptKey, list[EnergyPiece]]
    parts: dict[str, list[EnergyPiece]]
    node: list[EnergyPiece] | None
    reasons: dict[str, str] = field(default_factory=dict)


NOTHING = Attributed(attempts={}, parts={}, node=None)


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


def cpu_seconds(pieces: Iterable[CpuPiece]) -> float:
    """Return the CPU seconds of pieces."""
    return sum(piece.cpu_ns for piece in pieces) / 1e9


def core_seconds(shares: Iterable[Share]) -> float:
    """Return the slot seconds of shares; times the cores of a slot, these are its reserved core seconds."""
    return sum((end - start) * share for start, end, share in shares) / 1e9


def clipped(pieces: Iterable[CpuPiece], window: Interval) -> list[CpuPiece]:
    """Return what of the pieces lies in a window."""
    first, last = window
    found = []
    for piece in pieces:
        start, end, cpu = piece
        if start >= first and end <= last:
            found.append(piece)
        elif start < last and end > first:
            begin, finish = max(start, first), min(end, last)
            found.append(CpuPiece(begin, finish, cpu * (finish - begin) / (end - start)))
    return found


def held(shares: Iterable[Share], joules_per_ns: float) -> list[EnergyPiece]:
    """Return the energy of reserved time at a constant power."""
    return [EnergyPiece(start, end, (end - start) * share * joules_per_ns) for start, end, share in shares]


def metered(shares: Iterable[Share], meter: EnergySeries, factor: float = 1.0) -> Iterator[EnergyPiece]:
    """Yield the energy of shares by a meter, cut at its samples: there the power changes."""
    for start, end, share in shares:
        at = start
        for until in (*meter.cuts(start, end), end):
            yield EnergyPiece(at, until, meter.energy(at, until) * share * factor)
            at = until


def merged(*groups: Mapping[AttemptKey, Sequence[EnergyPiece]]) -> dict[AttemptKey, list[EnergyPiece]]:
    """Return the pieces of each attempt together, in order of time."""
    found: dict[AttemptKey, list[EnergyPiece]] = {}
    for group in groups:
        for key, pieces in group.items():
            found.setdefault(key, []).extend(pieces)
    for pieces in found.values():
        pieces.sort()
    return found
