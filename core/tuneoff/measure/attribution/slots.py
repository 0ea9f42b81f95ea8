"""Whose the reserved time of each slot is, over the whole run: of attempts that are busy, overhead, idle, outside.

Before it the pieces of energy and of CPU time over a run, which every method of attribution gives.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tuneoff.measure.presence import Presence
from tuneoff.measure.slots import clusters, slot_window
from tuneoff.measure.spans import AttemptKey, Interval, OnSlot, busy, union, waits
from tuneoff.record.run_record import RunRecord

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


@dataclass(frozen=True, slots=True)
class SlotUse:
    """A slot's time from the run's start to its end, without remainder: busy attempts, and the three other parts."""

    slot: int
    busy: dict[AttemptKey, list[TimePiece]]
    parts: dict[str, list[TimePiece]]


def slot_uses(run: RunRecord, presence: Presence, end_ns: int) -> list[SlotUse]:
    """Return whose each slot's time is from 0 to `end_ns`.

    k attempts that overlap on a slot have 1/k of it each, by what each did then: as in `slots.slot_times`. What is neither
    busy nor overhead is idle inside the slot window, and outside of it `outside`, everywhere if there is no window.
    """
    window = slot_window(run)
    keys = {id(attempt): (trial.trial, index) for trial in run.trials for index, attempt in enumerate(trial.attempts)}
    uses = []
    for slot, items in sorted(presence.slots.items()):
        busy_pieces: dict[AttemptKey, list[TimePiece]] = {}
        overhead: list[TimePiece] = []
        for cluster in clusters(items):
            if len(cluster) > 1:
                _share_out(cluster, keys, busy_pieces, overhead)
                continue
            attempt = cluster[0].attempt
            waited = waits(attempt)
            busy_pieces[keys[id(attempt)]] = _whole(busy(attempt, waited))
            overhead.extend(_whole(waited))
        beside = [(piece.start_ns, piece.end_ns) for piece in presence.around.get(slot, ())]
        present = union([*beside, *((item.started_ns, item.ended_ns) for item in items)])
        overhead.extend(_whole(_within(beside, (0, end_ns))))
        overhead.sort()
        vacant = _without([(0, end_ns)], present)
        inside = _within(vacant, window) if window is not None else []
        parts = {"overhead": overhead, "idle": _whole(inside), "outside": _whole(_without(vacant, inside))}
        uses.append(SlotUse(slot, busy_pieces, parts))
    return uses


def _share_out(
    cluster: list[OnSlot], keys: dict[int, AttemptKey], busy_pieces: dict[AttemptKey, list[TimePiece]], overhead: list[TimePiece]
) -> None:
    """Share the time of attempts that overlap: a sweep over the moments at which one begins, ends, waits or goes on."""
    moves: list[tuple[int, int, int]] = []  # when, what (0 ends, 1 goes on, 2 begins, 3 waits), who
    for index, item in enumerate(cluster):
        busy_pieces[keys[id(item.attempt)]] = []
        if item.ended_ns == item.started_ns:
            continue
        moves += [(item.started_ns, 2, index), (item.ended_ns, 0, index)]
        for start, end in waits(item.attempt):
            moves += [(start, 3, index), (end, 1, index)]
    moves.sort()
    running: set[int] = set()
    waiting: set[int] = set()
    before = moves[0][0]
    for when, event, index in moves:
        if when > before and running:
            for runner in sorted(running):
                share = TimePiece(before, when, (when - before) / len(running))
                (overhead if runner in waiting else busy_pieces[keys[id(cluster[runner].attempt)]]).append(share)
        before = when
        if event == 2:
            running.add(index)
        elif event == 3:
            waiting.add(index)
        elif event == 1:
            waiting.discard(index)
        else:
            running.discard(index)
            waiting.discard(index)


def _whole(intervals: Iterable[Interval]) -> list[TimePiece]:
    return [TimePiece(start, end, end - start) for start, end in intervals]


def _without(intervals: Iterable[Interval], holes: list[Interval]) -> list[Interval]:
    """Return intervals without holes; both are disjoint and in order."""
    remaining = []
    index = 0
    for start, end in intervals:
        while index < len(holes) and holes[index][1] <= start:
            index += 1
        at, hole = start, index
        while hole < len(holes) and holes[hole][0] < end:
            if holes[hole][0] > at:
                remaining.append((at, holes[hole][0]))
            at = max(at, holes[hole][1])
            hole += 1
        if at < end:
            remaining.append((at, end))
    return remaining


def _within(intervals: Iterable[Interval], window: Interval) -> list[Interval]:
    return [(max(start, window[0]), min(end, window[1])) for start, end in intervals if start < window[1] and end > window[0]]
