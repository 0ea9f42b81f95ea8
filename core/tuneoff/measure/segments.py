"""What a slot did when: busy and waiting pieces of attempts."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tuneoff.record.run_record import AttemptRecord, RunRecord, TrialRecord

Interval = tuple[int, int]  # start, end in ns since the run's start


class OnSlot(NamedTuple):
    """A started attempt with its trial: what occupies a slot from `started_ns` to `ended_ns`."""

    trial: TrialRecord
    attempt: AttemptRecord
    slot: int
    started_ns: int
    ended_ns: int


def on_slots(run: RunRecord) -> dict[int, list[OnSlot]]:
    """Return the attempts of each slot in order of their starts; every slot of the run is there, used or not."""
    slots: dict[int, list[OnSlot]] = {slot: [] for slot in range(run.run_spec().experiment.workers.count)}
    for trial in run.trials:
        for attempt in trial.attempts:
            if attempt.slot is not None and attempt.started_ns is not None and attempt.ended_ns is not None:
                item = OnSlot(trial, attempt, attempt.slot, attempt.started_ns, attempt.ended_ns)
                slots.setdefault(attempt.slot, []).append(item)
    for items in slots.values():
        items.sort(key=lambda item: (item.started_ns, item.ended_ns, item.trial.trial, item.attempt.attempt))
    return slots


def waits(attempt: AttemptRecord) -> list[Interval]:
    """Return when an attempt waited inside `report`; to its end where its last report never returned."""
    # plain loops and comparisons: a run may have half a million epochs, and several metrics look at each
    ended, epochs = attempt.ended_ns, attempt.epochs
    assert ended is not None
    found = []
    last = len(epochs) - 1
    for index, epoch in enumerate(epochs):
        start, end = epoch.ended_ns, epoch.reported_ns
        if end is None:
            # with a later epoch the report did return, and its line is missing: the wait is unknown, not endless
            end = ended if index == last else start
        elif end > ended:
            end = ended
        if end > start:
            found.append((start, end))
    return found


def busy(attempt: AttemptRecord) -> list[Interval]:
    """Return when an attempt loaded, trained, validated or kept its checkpoint: its whole time but the waits."""
    if attempt.started_ns is None or attempt.ended_ns is None:
        return []
    found = []
    begin = attempt.started_ns
    for start, end in waits(attempt):
        if start > begin:
            found.append((begin, start))
        if end > begin:
            begin = end
    if attempt.ended_ns > begin:
        found.append((begin, attempt.ended_ns))
    return found


def busy_ns(attempt: AttemptRecord, after_ns: int | None = None) -> int:
    """Return the busy time of an attempt, all of it or what lies after a moment."""
    if after_ns is None:
        return sum(end - start for start, end in busy(attempt))
    return sum(end - max(start, after_ns) for start, end in busy(attempt) if end > after_ns)


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the same time as disjoint intervals in order."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        elif end > start:
            merged.append((start, end))
    return merged


def length(intervals: Sequence[Interval], window: Interval) -> int:
    """Return how much of the window the intervals cover; they must be disjoint and in order."""
    start, end = window
    if intervals and intervals[0][0] >= start and intervals[-1][1] <= end:
        return sum(finish - begin for begin, finish in intervals)
    total = 0
    for index in range(max(0, bisect.bisect_left(intervals, window) - 1), len(intervals)):
        begin, finish = intervals[index]
        if begin >= end:
            break
        total += max(0, min(finish, end) - max(begin, start))
    return total
