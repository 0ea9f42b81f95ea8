"""Busy, overhead and idle time of the slots: a split without remainder, in pieces and in windows."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tuneoff.base.last import remembers_last
from tuneoff.measure.attribution.pieces import TimePiece, clipped
from tuneoff.measure.presence import Presence
from tuneoff.measure.spans import NO_BEST, AttemptKey, Interval, OnSlot, boundaries, busy, length, most_at_once, union, waits
from tuneoff.record.metric_value import MetricValue, metric_value, milliseconds, missing
from tuneoff.record.run_record import RunRecord


@dataclass(slots=True)
class SlotUse:
    """A slot's time: of attempts that are busy, and overhead, both in `present`; what is in neither is idle."""

    slot: int
    present: list[Interval] = field(default_factory=list)  # attempts, or processes without one; disjoint and in order
    busy: dict[AttemptKey, list[TimePiece]] = field(default_factory=dict)
    overhead: list[TimePiece] = field(default_factory=list)
    overlapped: list[Interval] = field(default_factory=list)  # several attempts ran; disjoint and in order

    def parts(self, window: Interval | None, end_ns: int) -> dict[str, list[TimePiece]]:
        """Return what is not busy from 0 to `end_ns`: overhead, `idle` in the slot window, and `outside` of it."""
        vacant, at = [], 0
        for begin, finish in (*self.present, (end_ns, end_ns)):
            if min(begin, end_ns) > at:
                vacant.append((at, min(begin, end_ns)))
            at = max(at, finish)
        first, last = window if window is not None else (end_ns, end_ns)
        return {
            "overhead": clipped(self.overhead, (0, end_ns)),
            "idle": _within(vacant, (first, last)),
            "outside": _within(vacant, (0, first)) + _within(vacant, (last, end_ns)),
        }


@remembers_last
def slot_uses(presence: Presence) -> list[SlotUse]:
    """Return whose each slot's time is, in order of the slots' numbers.

    Busy: an attempt loads, trains, validates, keeps its checkpoint. Overhead: it waits in `report`, or a process is
    there or being started (see `presence_of`). Where k attempts overlap on one slot each has 1/k of the time, split by what it
    did then.
    """
    uses = []
    for slot, items in sorted(presence.slots.items()):
        use = SlotUse(slot)
        for cluster in _clusters(items):
            if len(cluster) > 1:
                _share_out(cluster, use)
                continue
            waited = waits(cluster[0].attempt)
            use.busy[cluster[0].key] = _whole(busy(cluster[0].attempt, waited))
            use.overhead += _whole(waited)
        around = [(piece.start_ns, piece.end_ns) for piece in presence.around.get(slot, ())]
        use.overhead = sorted(use.overhead + _whole(around))
        use.present = union([*around, *((item.started_ns, item.ended_ns) for item in items)])
        uses.append(use)
    return uses


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotTime:
    """A slot's time in a window, in ns: busy + overhead + idle is the window; `overlapped_ns` lies in the first two."""

    slot: int
    busy_ns: int
    overhead_ns: int
    idle_ns: int
    overlapped_ns: int


def slot_times(presence: Presence, window: Interval) -> list[SlotTime]:
    """Split each slot's time in a window, which must not end before it starts."""
    times = []
    for use in slot_uses(presence):
        present = length(use.present, window)
        busy_ns = round(sum(piece.time_ns for pieces in use.busy.values() for piece in clipped(pieces, window)))
        times.append(
            SlotTime(
                slot=use.slot,
                busy_ns=busy_ns,
                overhead_ns=present - busy_ns,
                idle_ns=window[1] - window[0] - present,
                overlapped_ns=length(use.overlapped, window),
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
    window, span = slot_window(run), trial_window(run)
    if window is None:
        values.update({f"slots.{name}": missing("slot-s", NO_BEST) for name in ("busy", "overhead", "idle", "slot_time")})
        values.update({f"slots.{name}_share": missing("%", NO_BEST) for name in ("overhead", "idle")})
    else:
        times = slot_times(presence, window)
        total = len(times) * (window[1] - window[0])
        values["slots.slot_time"] = metric_value(total / 1e9, "slot-s")
        for name in ("busy", "overhead", "idle"):
            by_slot = {time.slot: getattr(time, f"{name}_ns") for time in times}
            used = sum(by_slot.values())
            values[f"slots.{name}"] = metric_value(used / 1e9, "slot-s")
            values.update({f"slots.{name}[{slot}]": metric_value(time_ns / 1e9, "s") for slot, time_ns in by_slot.items()})
            if name != "busy":
                values[f"slots.{name}_share"] = _share(used, total, "the slot window is empty")
    times = slot_times(presence, span) if span is not None else []
    lasts = span[1] - span[0] if span is not None else 0
    reason = "no trial ended" if span is None else "the trial span is empty"
    values["slots.utilization"] = _share(sum(time.busy_ns for time in times), len(times) * lasts, reason)
    values["slots.overlapped"] = metric_value(sum(time.overlapped_ns for time in times) / 1e9, "s")
    values["slots.crowded"] = metric_value((length(presence.crowded, span) if span is not None else 0) / 1e9, "s")
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


def _clusters(items: list[OnSlot]) -> Iterator[list[OnSlot]]:
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


def _share_out(cluster: list[OnSlot], use: SlotUse) -> None:
    """Share the time of attempts that overlap: a sweep over the moments at which one begins, ends, waits or goes on."""
    moves: list[tuple[int, int, int]] = []  # when, what (0 ends, 1 goes on, 2 begins, 3 waits), who
    for index, item in enumerate(cluster):
        use.busy[item.key] = []
        if item.ended_ns > item.started_ns:
            moves += [(item.started_ns, 2, index), (item.ended_ns, 0, index)]
            for start, end in waits(item.attempt):
                moves += [(start, 3, index), (end, 1, index)]
    moves.sort()
    running: set[int] = set()
    waiting: set[int] = set()
    before = moves[0][0] if moves else 0
    for when, event, index in moves:
        if when > before and running:
            for runner in sorted(running):
                share = TimePiece(before, when, (when - before) / len(running))
                (use.overhead if runner in waiting else use.busy[cluster[runner].key]).append(share)
            if len(running) > 1:
                use.overlapped.append((before, when))
        before = when
        if event == 2:
            running.add(index)
        elif event == 3:
            waiting.add(index)
        else:
            waiting.discard(index)
            if event == 0:
                running.discard(index)


def _whole(intervals: Iterable[Interval]) -> list[TimePiece]:
    return [TimePiece(start, end, end - start) for start, end in intervals]


def _within(intervals: Iterable[Interval], window: Interval) -> list[TimePiece]:
    start, end = window
    return _whole((max(begin, start), min(finish, end)) for begin, finish in intervals if begin < end and finish > start)


def _share(part: int, whole: int, reason: str) -> MetricValue:
    return metric_value(100 * part / whole, "%") if whole > 0 else missing("%", reason)
