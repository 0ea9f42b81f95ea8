"""Which processes were there for trials, and which slots they occupied without one: what is neither is idle."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tuneoff.base.layout import IN_PODS
from tuneoff.measure.spans import Interval, OnSlot
from tuneoff.record.run_record import FlagRecord, RunRecord

START_GRAIN_NS = 10_000_000  # the kernel tells a process's start in clock ticks, rounded down
POD_GRAIN_NS = 1_000_000_000  # a pod's exit is dated to the second
CROWDED_FLAG, DOUBLED_FLAG = "more_processes_than_workers", "trials_share_a_slot"
_BEGINNING = -(1 << 62)


class Present(NamedTuple):
    """A process that was there for trials, and its attempts in order of their starts (none: it ended before one)."""

    start_ns: int
    end_ns: int
    items: tuple[OnSlot, ...]


class Around(NamedTuple):
    """A stretch of a slot's time that processes have which run no attempt then; each has an equal share of it."""

    start_ns: int
    end_ns: int
    processes: tuple[Present, ...]


class Vacancy(NamedTuple):
    """A stretch of time in which so many slots were empty although as many processes were still to come."""

    start_ns: int
    end_ns: int
    slots: int


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Presence:
    """How the slots of a run were occupied. At every moment min(slots, processes present) of them are, but in `doubled`."""

    slots: dict[int, list[OnSlot]]
    processes: list[Present]
    around: dict[int, list[Around]] = field(default_factory=lambda: defaultdict(list))  # disjoint and in order, beside attempts
    vacant: list[Vacancy] = field(default_factory=list)
    crowded: list[Interval] = field(default_factory=list)  # more processes were present than there are slots
    doubled: list[Interval] = field(default_factory=list)  # attempts overlapped on a slot while another was empty


def presence_of(run: RunRecord) -> Presence:
    """Return which processes were present when, and which slots they occupied.

    A process that was started for one trial is present from its start by the kernel to its exit, also without an attempt; one
    that lives long from its start to the end of its last attempt. An attempt is on its own slot. A process without one then
    occupies the slot of its next attempt, else of its last one, if that is empty, else any empty one; where more of them are
    present than slots are left, they share what is left.
    """
    workers = run.run_spec().experiment.workers.count
    slots: dict[int, list[OnSlot]] = {slot: [] for slot in range(workers)}  # every slot of the run is there, used or not
    for trial in run.trials:
        for index, attempt in enumerate(trial.attempts):
            if attempt.slot is not None and attempt.started_ns is not None and attempt.ended_ns is not None:
                item = OnSlot(trial, attempt, (trial.trial, index), attempt.slot, attempt.started_ns, attempt.ended_ns)
                slots.setdefault(attempt.slot, []).append(item)
    for items in slots.values():
        items.sort(key=lambda item: (item.started_ns, item.ended_ns, item.trial.trial, item.attempt.attempt))
    presence = Presence(slots, processes_of(run, slots))
    _sweep(presence, workers)
    return presence


def presence_flags(run: RunRecord, presence: Presence) -> Iterator[FlagRecord]:
    """Yield what disturbs the booking of slots; nothing of what is within the grain of starts, or of ends that nobody saw.

    A pool replaces a process that was killed at once, and its trial's end is known to when somebody looked.
    """
    attempts = [item.attempt for process in presence.processes for item in process.items]
    ends = [(attempt.ended_ns, attempt.uncertainty_ns) for attempt in attempts if attempt.ended_ns is not None]
    grain_ns = POD_GRAIN_NS if any(attempt.process_role in IN_PODS for attempt in attempts) else START_GRAIN_NS
    workers = run.run_spec().experiment.workers.count
    for name, intervals, text in (
        (CROWDED_FLAG, presence.crowded, f"more processes than the {workers} workers were present: they share the slots"),
        (DOUBLED_FLAG, presence.doubled, "trials overlapped on a slot while another was empty: its time is called idle"),
    ):
        lengths = []
        for start, end in intervals:
            if end - start > grain_ns:
                uncertainties = [uncertainty for ended, uncertainty in ends if start < ended <= end]
                lengths += [end - start] if end - start > grain_ns + max(uncertainties, default=0) else []
        if lengths:
            yield FlagRecord(name=name, text=f"{text}, {sum(lengths) / 1e9:.3g} s together", count=len(lengths))


def processes_of(run: RunRecord, slots: Mapping[int, Sequence[OnSlot]]) -> list[Present]:
    """Return the processes that were there for trials, in order of their starts."""
    by_process: dict[str, list[OnSlot]] = defaultdict(list)
    for items in slots.values():
        for item in items:
            by_process[item.attempt.process or f"unknown:{id(item)}"].append(item)
    processes = [Present(process.started_ns, process.ended_ns, ()) for process in run.without_attempt]
    for items in by_process.values():
        items.sort(key=lambda item: item.started_ns)
        first = items[0]
        started, exited = first.attempt.process_started_ns, first.attempt.exited_ns
        start = first.started_ns if started is None else min(started, first.started_ns)
        end = max(max(item.ended_ns for item in items), exited if exited is not None else start)
        processes.append(Present(start, end, tuple(items)))
    return sorted(processes, key=lambda process: (process.start_ns, process.end_ns, [item.trial.trial for item in process.items]))


def _sweep(presence: Presence, count: int) -> None:
    """Go through the moments at which a process comes or goes, or an attempt starts or ends, and book the time between them."""
    moves: list[tuple[int, int, int, int]] = []  # when, what (0 attempt ends, 1 goes, 2 comes, 3 attempt starts), who, slot
    for index, process in enumerate(presence.processes):
        moves += [(process.start_ns, 2, index, -1), (process.end_ns, 1, index, -1)]
        for item in process.items:
            if item.ended_ns > item.started_ns:
                moves += [(item.started_ns, 3, index, item.slot), (item.ended_ns, 0, index, item.slot)]
    moves.sort()
    present: dict[int, int] = {}  # processes by their index: how many attempts they run
    running: dict[int, int] = {}  # attempts by slot, where there are any
    to_come = len(presence.processes)
    before = _BEGINNING
    for when, event, index, slot in moves:
        if when > before:
            waiting = sorted(index for index, attempts in present.items() if not attempts)
            _book(presence, count, before, when, waiting, running)
            vacant = min(max(0, count - len(running)) - len(waiting), to_come)
            if vacant > 0:
                presence.vacant.append(Vacancy(before, when, vacant))
            if len(present) > count:
                _lengthen(presence.crowded, before, when)
            if len(running) + min(max(0, count - len(running)), len(waiting)) < min(count, len(present)):
                _lengthen(presence.doubled, before, when)
            before = when
        if event in (0, 3):
            change = 1 if event == 3 else -1
            present[index] += change
            running[slot] = running.get(slot, 0) + change
            if not running[slot]:
                del running[slot]
        elif event == 1:
            present.pop(index, None)
        else:
            to_come -= 1
            if presence.processes[index].end_ns > when:
                present[index] = 0


def _book(presence: Presence, count: int, start: int, end: int, waiting: list[int], running: Mapping[int, int]) -> None:
    """Give empty slots to processes without an attempt: to each its own if possible, else all share all."""
    empty = [slot for slot in range(count) if slot not in running][: max(0, count - len(running))]
    processes = [presence.processes[index] for index in waiting]
    if len(processes) > len(empty):
        shares = [(slot, tuple(processes)) for slot in empty]
    else:
        shares, homeless = [], []
        for process in processes:
            attempt = min(following(process, start), len(process.items) - 1)  # the next one, else the last
            slot = process.items[attempt].slot if process.items else -1
            if slot in empty:
                empty.remove(slot)
                shares.append((slot, (process,)))
            else:
                homeless.append(process)
        shares += [(slot, (process,)) for slot, process in zip(empty, homeless, strict=False)]
    for slot, sharing in shares:
        pieces = presence.around[slot]
        if pieces and pieces[-1].end_ns == start and pieces[-1].processes == sharing:
            pieces[-1] = Around(pieces[-1].start_ns, end, sharing)
        else:
            pieces.append(Around(start, end, sharing))


def following(process: Present, t: int) -> int:
    """Return the place of a process's first attempt that starts after a moment; their number where none does."""
    return bisect.bisect_right(process.items, t, key=lambda item: item.started_ns)


def _lengthen(intervals: list[Interval], start: int, end: int) -> None:
    if intervals and intervals[-1][1] == start:
        intervals[-1] = intervals[-1][0], end
    else:
        intervals.append((start, end))
