"""Whose the reserved time of each slot is, over the whole run: of attempts that are busy, overhead, idle, outside."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tuneoff.measure.attribution.intervals import AttemptKey, Share
from tuneoff.measure.presence import Around, presence_of
from tuneoff.measure.segments import Interval, OnSlot, busy, union, waits
from tuneoff.measure.slots import clusters, slot_window
from tuneoff.record.run_record import RunRecord

SLOT_PARTS = ("overhead", "idle", "outside")


@dataclass(frozen=True, slots=True)
class SlotUse:
    """A slot's time from the run's start to its end, without remainder: busy attempts, and the three other parts."""

    slot: int
    busy: dict[AttemptKey, list[Share]]
    parts: dict[str, list[Share]]


def slot_uses(run: RunRecord, end_ns: int) -> list[SlotUse]:
    """Return whose each slot's time is from 0 to `end_ns`.

    k attempts that overlap on a slot have 1/k of it each, by what each did then: as in `slots.slot_times`. What is neither
    busy nor overhead is idle inside the slot window, and outside of it `outside`, everywhere if there is no window.
    """
    presence = presence_of(run)
    window = slot_window(run)
    keys = {id(attempt): (trial.trial, index) for trial in run.trials for index, attempt in enumerate(trial.attempts)}
    return [
        _slot_use(slot, items, presence.around.get(slot, []), window, end_ns, keys)
        for slot, items in sorted(presence.slots.items())
    ]


def _slot_use(
    slot: int,
    items: list[OnSlot],
    around: list[Around],
    window: Interval | None,
    end_ns: int,
    keys: dict[int, AttemptKey],
) -> SlotUse:
    found: dict[AttemptKey, list[Share]] = {}
    overhead: list[Share] = []
    for cluster in clusters(items):
        if len(cluster) > 1:
            _share_out(cluster, keys, found, overhead)
            continue
        attempt = cluster[0].attempt
        found[keys[id(attempt)]] = [Share(start, end, 1.0) for start, end in busy(attempt)]
        overhead.extend(Share(start, end, 1.0) for start, end in waits(attempt))
    beside = [(one.start_ns, one.end_ns) for one in around]
    present = union([*beside, *((item.started_ns, item.ended_ns) for item in items)])
    overhead.extend(Share(start, end, 1.0) for start, end in _within(beside, (0, end_ns)))
    overhead.sort()
    vacant = _without([(0, end_ns)], present)
    inside = _within(vacant, window) if window is not None else []
    return SlotUse(
        slot,
        found,
        {
            "overhead": overhead,
            "idle": [Share(start, end, 1.0) for start, end in inside],
            "outside": [Share(start, end, 1.0) for start, end in _without(vacant, inside)],
        },
    )


def _share_out(
    cluster: list[OnSlot], keys: dict[int, AttemptKey], found: dict[AttemptKey, list[Share]], overhead: list[Share]
) -> None:
    """Share the time of attempts that overlap: a sweep over the moments at which one begins, ends, waits or goes on."""
    moves: list[tuple[int, int, int]] = []  # when, what (0 ends, 1 goes on, 2 begins, 3 waits), who
    for index, item in enumerate(cluster):
        found[keys[id(item.attempt)]] = []
        if item.ended_ns == item.started_ns:
            continue
        moves += [(item.started_ns, 2, index), (item.ended_ns, 0, index)]
        for start, end in waits(item.attempt):
            moves += [(start, 3, index), (end, 1, index)]
    moves.sort()
    there: set[int] = set()
    waiting: set[int] = set()
    before = moves[0][0]
    for when, what, index in moves:
        if when > before and there:
            for one in sorted(there):
                share = Share(before, when, 1 / len(there))
                (overhead if one in waiting else found[keys[id(cluster[one].attempt)]]).append(share)
        before = when
        if what == 2:
            there.add(index)
        elif what == 3:
            waiting.add(index)
        elif what == 1:
            waiting.discard(index)
        else:
            there.discard(index)
            waiting.discard(index)


def _without(intervals: Iterable[Interval], holes: list[Interval]) -> list[Interval]:
    """Return intervals without holes; both are disjoint and in order."""
    found = []
    index = 0
    for start, end in intervals:
        while index < len(holes) and holes[index][1] <= start:
            index += 1
        at, hole = start, index
        while hole < len(holes) and holes[hole][0] < end:
            if holes[hole][0] > at:
                found.append((at, holes[hole][0]))
            at = max(at, holes[hole][1])
            hole += 1
        if at < end:
            found.append((at, end))
    return found


def _within(intervals: Iterable[Interval], window: Interval) -> list[Interval]:
    return [(max(start, window[0]), min(end, window[1])) for start, end in intervals if start < window[1] and end > window[0]]
