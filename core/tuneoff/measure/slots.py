"""Busy, overhead and idle time of the slots: a split without remainder."""

from __future__ import annotations

import bisect
import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tuneoff.measure.presence import Presence
from tuneoff.measure.spans import NO_BEST, Interval, OnSlot, boundaries, busy, busy_ns, length, most_at_once, union, waits
from tuneoff.record.metric_value import MetricValue, metric_value, milliseconds, missing
from tuneoff.record.run_record import RunRecord


@dataclass(frozen=True, slots=True)
class Slot:
    """What of a slot's time does not depend on a window."""

    slot: int
    around: list[Interval]
    taken: list[Interval]  # by attempts; disjoint
    alone: list[OnSlot]  # attempts that overlap no other
    alone_busy_ns: int
    overlapping: list[list[OnSlot]]


def slots_of(presence: Presence) -> list[Slot]:
    """Return the slots of a run in order of their numbers."""
    slots = []
    for slot, items in sorted(presence.slots.items()):
        groups = list(clusters(items))
        alone = [group[0] for group in groups if len(group) == 1]
        around = [(piece.start_ns, piece.end_ns) for piece in presence.around.get(slot, ())]
        taken = union((item.started_ns, item.ended_ns) for item in items)
        busy_time = sum(busy_ns(item.attempt) for item in alone)
        slots.append(Slot(slot, around, taken, alone, busy_time, [group for group in groups if len(group) > 1]))
    return slots


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotTime:
    """A slot's time in a window, in ns: busy + overhead + idle is the window; `overlapped_ns` lies in the first two."""

    slot: int
    busy_ns: int
    overhead_ns: int
    idle_ns: int
    overlapped_ns: int = 0


def slot_times(slots: Sequence[Slot], window: Interval) -> list[SlotTime]:
    """Split each slot's time in a window.

    Busy: an attempt loads, trains, validates, keeps its checkpoint. Overhead: it waits in `report`, or a process is
    there or being started (see `presence_of`). Idle: neither. Where k attempts overlap on one slot each has
    1/k of the time (the odd nanoseconds go to those that started first), split by what it did then; the overlap is told.

    Raises:
        ValueError: the window ends before it starts.
    """
    if window[1] < window[0]:
        raise ValueError(f"`start <= end` must hold, but got {window}")
    times = []
    for slot in slots:
        taken = slot.taken
        present = length(slot.around, window) + length(taken, window)
        is_inside = bool(taken) and window[0] <= taken[0][0] and taken[-1][1] <= window[1]
        busy_time = slot.alone_busy_ns if is_inside else sum(length(busy(item.attempt), window) for item in slot.alone)
        overlapped = 0
        for group in slot.overlapping:
            shared, both = _shared_busy(group, window)
            busy_time, overlapped = busy_time + shared, overlapped + both
        times.append(
            SlotTime(
                slot=slot.slot,
                busy_ns=busy_time,
                overhead_ns=present - busy_time,
                idle_ns=window[1] - window[0] - present,
                overlapped_ns=overlapped,
            )
        )
    return times


def slot_window(run: RunRecord) -> Interval | None:
    """Return the window of idle figures: from the end of deploy to the best known; None without both."""
    marks = boundaries(run)
    if marks.deployed_ns is None or marks.best_known_ns is None:
        return None
    return marks.deployed_ns, marks.best_known_ns


def trial_window(run: RunRecord) -> Interval | None:
    """Return the trial span: from the first submission to the last trial's end."""
    marks = boundaries(run)
    if marks.first_submitted_ns is None or marks.last_ended_ns is None:
        return None
    return marks.first_submitted_ns, marks.last_ended_ns


def greatest_overlap(slots: Mapping[int, Sequence[OnSlot]]) -> int:
    """Return how many attempts ran at once at most: it must not exceed `workers.count`.

    An end that others saw a moment late (`uncertainty_ns`) counts from when it may have been: the slot was free by then.
    """
    items = (item for slot in slots.values() for item in slot)
    return most_at_once((item.started_ns, max(item.started_ns, item.ended_ns - item.attempt.uncertainty_ns)) for item in items)


def slot_metrics(run: RunRecord, presence: Presence) -> dict[str, MetricValue]:
    """Return slot times in slot-seconds, shares in %, utilization over the trial span, and gaps between trials."""
    values: dict[str, MetricValue] = {}
    slots = slots_of(presence)
    window = slot_window(run)
    names = ("busy", "overhead", "idle", "slot_time")
    if window is None:
        values.update({f"slots.{name}": missing("slot-s", NO_BEST) for name in names})
        values.update({f"slots.{name}_share": missing("%", NO_BEST) for name in ("overhead", "idle")})
    else:
        times = slot_times(slots, window)
        total = len(times) * (window[1] - window[0])
        sums = _sums(times)
        for name in names:
            values[f"slots.{name}"] = metric_value((total if name == "slot_time" else sums[name]) / 1e9, "slot-s")
        for name in ("overhead", "idle"):
            values[f"slots.{name}_share"] = _share(sums[name], total, "the slot window is empty")
        for time in times:
            values[f"slots.busy[{time.slot}]"] = metric_value(time.busy_ns / 1e9, "s")
            values[f"slots.overhead[{time.slot}]"] = metric_value(time.overhead_ns / 1e9, "s")
            values[f"slots.idle[{time.slot}]"] = metric_value(time.idle_ns / 1e9, "s")
    span = trial_window(run)
    overlapped = crowded = 0
    if span is None:
        values["slots.utilization"] = missing("%", "no trial ended")
    else:
        times = slot_times(slots, span)
        values["slots.utilization"] = _share(_sums(times)["busy"], len(times) * (span[1] - span[0]), "the trial span is empty")
        overlapped = sum(time.overlapped_ns for time in times)
        crowded = length(presence.crowded, span)
    values["slots.overlapped"] = metric_value(overlapped / 1e9, "s")
    values["slots.crowded"] = metric_value(crowded / 1e9, "s")
    values["slots.greatest_overlap"] = metric_value(greatest_overlap(presence.slots), "count")
    gaps = [  # overlaps left out
        after.started_ns - before.ended_ns
        for items in presence.slots.values()
        for before, after in itertools.pairwise(items)
        if after.started_ns >= before.ended_ns
    ]
    median = round(statistics.median(gaps)) if gaps else None
    values["slots.trial_gap_median"] = milliseconds(median, "no slot ran two trials in turn", n_samples=len(gaps))
    return values


def clusters(items: list[OnSlot]) -> Iterator[list[OnSlot]]:
    """Yield groups of attempts that overlap each other, directly or through others."""
    group: list[OnSlot] = []
    end = 0
    for item in items:
        if group and item.started_ns >= end:
            yield group
            group = []
        end = max(end, item.ended_ns) if group else item.ended_ns
        group.append(item)
    if group:
        yield group


def _shared_busy(items: list[OnSlot], window: Interval) -> tuple[int, int]:
    """Return (busy time, overlapped time) in a window where attempts overlap: each piece is shared equally."""
    pauses = [waits(item.attempt) for item in items]
    cuts = {window[0], window[1]}
    for item, pause in zip(items, pauses, strict=True):
        cuts.update((item.started_ns, item.ended_ns), *pause)
    inside = sorted(cut for cut in cuts if window[0] <= cut <= window[1])
    busy_time = overlapped = 0
    for start, end in itertools.pairwise(inside):
        running = [index for index, item in enumerate(items) if item.started_ns <= start and item.ended_ns >= end]
        if not running:
            continue
        share, odd = divmod(end - start, len(running))
        overlapped += end - start if len(running) > 1 else 0
        for position, index in enumerate(running):
            last = bisect.bisect_right(pauses[index], (start, 1 << 62)) - 1
            if last < 0 or start >= pauses[index][last][1]:
                busy_time += share + (position < odd)
    return busy_time, overlapped


def _sums(times: list[SlotTime]) -> dict[str, int]:
    return {
        "busy": sum(time.busy_ns for time in times),
        "overhead": sum(time.overhead_ns for time in times),
        "idle": sum(time.idle_ns for time in times),
    }


def _share(part: int, whole: int, reason: str) -> MetricValue:
    return metric_value(100 * part / whole, "%") if whole > 0 else missing("%", reason)
