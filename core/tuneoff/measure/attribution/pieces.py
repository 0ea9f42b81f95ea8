"""Pieces of energy, of CPU time and of slots over a run, which every method of attribution gives."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tuneoff.measure.spans import AttemptKey, Interval

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
class Attributed:
    """What a method found; what is missing in `attempts` and `parts` is unknown, for the `reasons` of its part or `trials`."""

    attempts: dict[AttemptKey, list[EnergyPiece]]
    parts: dict[str, list[EnergyPiece]]
    node: list[EnergyPiece] | None = None
    reasons: dict[str, str] = field(default_factory=dict)
    is_assumed: bool = False  # that the slots of an accelerator, and nobody else, use it, evenly


NOTHING = Attributed(attempts={}, parts={})


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
