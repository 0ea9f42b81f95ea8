"""The one pass over a run's events: sort them by what they belong to, in any order of files, on one time scale.

That is nanoseconds since the run's start, on the coordinator's clock.
"""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tuneoff.base.clock import NANOSECONDS
from tuneoff.record.events.reader import Alignment
from tuneoff.record.events.schema import (
    BestKnown,
    Epoch,
    Event,
    Flag,
    GoalMet,
    Process,
    ProcessExited,
    Reported,
    RunStopped,
    Stage,
    StepEnded,
    StepStarted,
    StopDecided,
    StorageUsed,
    Tested,
    TrialEnded,
    TrialKilled,
    TrialLoaded,
    TrialRefused,
    TrialStarted,
    TrialSubmitted,
    WorkerDied,
)
from tuneoff.record.run_record import ClockRecord, StageRecord

E = TypeVar("E", bound=Event)
Reading = tuple[int | None, int | None, int | None]  # when a report returned, the attempt's CPU time then, when it began
NOT_REPORTED: Reading = (None, None, None)
Key = tuple[str, int]  # trial, attempt


@dataclass(frozen=True, slots=True)
class EventOfProcess(Generic[E]):
    """An event and the process that wrote it."""

    process: Process
    event: E


class AttemptEvents:
    """What the process of one attempt wrote about it."""

    __slots__ = ("ended", "epochs", "loaded", "process", "reported", "started", "stop_epoch")

    def __init__(self, process: Process, started: TrialStarted) -> None:
        self.process = process
        self.started = started
        self.loaded: TrialLoaded | None = None
        self.epochs: list[Epoch] = []
        self.reported: list[Reading] = []  # one per epoch, NOT_REPORTED where the report never returned
        self.stop_epoch: int | None = None
        self.ended: TrialEnded | None = None

    @property
    def last_t(self) -> int:
        """The last sign of life, on the process's own clock."""
        times = [self.started.t]
        if self.loaded is not None:
            times.append(self.loaded.t)
        if self.epochs:
            times.append(self.epochs[-1].t)
        times.extend(t for t, *_ in self.reported[-1:] if t is not None)
        if self.ended is not None:
            times.append(self.ended.t)
        return max(times)


@dataclass(slots=True)
class Collected:
    """A run's events by what they belong to. Each list is in the order of reading: pick by time, never by position."""

    processes: list[Process] = field(default_factory=list)
    events: int = 0
    orphans: int = 0  # of trials that their process never started (their lines are missing)
    steps_started: list[EventOfProcess[StepStarted]] = field(default_factory=list)
    steps_ended: list[EventOfProcess[StepEnded]] = field(default_factory=list)
    submitted: dict[Key, list[EventOfProcess[TrialSubmitted]]] = field(default_factory=lambda: defaultdict(list))
    executions: dict[Key, list[AttemptEvents]] = field(default_factory=lambda: defaultdict(list))
    observed_ends: dict[Key, list[EventOfProcess[TrialEnded]]] = field(default_factory=lambda: defaultdict(list))
    killed: dict[Key, list[EventOfProcess[TrialKilled]]] = field(default_factory=lambda: defaultdict(list))
    died: dict[Key, list[EventOfProcess[WorkerDied]]] = field(default_factory=lambda: defaultdict(list))
    stops: dict[str, list[EventOfProcess[StopDecided]]] = field(default_factory=lambda: defaultdict(list))
    goals: list[EventOfProcess[GoalMet]] = field(default_factory=list)
    exits: dict[str, list[EventOfProcess[ProcessExited]]] = field(default_factory=lambda: defaultdict(list))  # by process name
    run_stopped: list[EventOfProcess[RunStopped]] = field(default_factory=list)
    refused: list[EventOfProcess[TrialRefused]] = field(default_factory=list)
    best: list[EventOfProcess[BestKnown]] = field(default_factory=list)
    tested: list[EventOfProcess[Tested]] = field(default_factory=list)
    flags: list[EventOfProcess[Flag]] = field(default_factory=list)
    stages: dict[str, StageRecord] = field(default_factory=dict)
    storage_used: list[EventOfProcess[StorageUsed]] = field(default_factory=list)


_LISTS: Mapping[type[Any], str] = {  # where events of a type are collected
    TrialSubmitted: "submitted",
    TrialEnded: "observed_ends",
    TrialKilled: "killed",
    WorkerDied: "died",
    StopDecided: "stops",
    GoalMet: "goals",
    ProcessExited: "exits",
    StepStarted: "steps_started",
    StepEnded: "steps_ended",
    RunStopped: "run_stopped",
    TrialRefused: "refused",
    BestKnown: "best",
    Tested: "tested",
    Flag: "flags",
    StorageUsed: "storage_used",
}


def collect(events: Iterable[tuple[Process, Event]]) -> Collected:
    """Sort a run's events in one pass; per process in its own order, processes in any order."""
    collected = Collected()
    running: dict[int, dict[Key, AttemptEvents]] = {}
    current: Process | None = None
    mine: dict[Key, AttemptEvents] = {}
    count = 0
    for process, event in events:
        count += 1
        if process is not current:
            current = process
            if id(process) not in running:
                running[id(process)] = {}
                collected.processes.append(process)  # also keeps it alive, so that its id stays its own
            mine = running[id(process)]
        kind = type(event)
        if kind is Epoch or kind is Reported:
            execution = mine.get((event.trial, event.attempt))  # type: ignore[attr-defined]
            if execution is None:
                collected.orphans += 1
            elif kind is Epoch:
                execution.epochs.append(event)  # type: ignore[arg-type]
            else:
                epochs, reported = execution.epochs, execution.reported
                # as many reports as epochs: a line that stands twice
                if len(reported) >= len(epochs) or epochs[-1].epoch != event.epoch:  # type: ignore[attr-defined]
                    collected.orphans += 1
                    continue
                reported.extend([NOT_REPORTED] * (len(epochs) - 1 - len(reported)))
                began = event.began  # type: ignore[attr-defined]
                reported.append((event.t, event.cpu_ns if began is None else None, began))  # type: ignore[attr-defined]
                if event.stop and execution.stop_epoch is None:  # type: ignore[attr-defined]
                    execution.stop_epoch = event.epoch  # type: ignore[attr-defined]
        elif isinstance(event, TrialStarted):
            execution = AttemptEvents(process, event)
            mine[event.trial, event.attempt] = execution
            collected.executions[event.trial, event.attempt].append(execution)
        elif isinstance(event, TrialLoaded):
            if (event.trial, event.attempt) in mine:
                mine[event.trial, event.attempt].loaded = event
            else:
                collected.orphans += 1
        elif isinstance(event, TrialEnded) and (event.trial, event.attempt) in mine and event.by == "trial":
            execution = mine[event.trial, event.attempt]
            execution.ended = execution.ended or event
        elif isinstance(event, Stage):
            stage, took = collected.stages.get(event.name), event.duration_ns
            if stage is None:
                stage = StageRecord(name=event.name, count=0, total_ns=0, min_ns=took, max_ns=took)
            collected.stages[event.name] = StageRecord(
                name=event.name,
                count=stage.count + 1,
                total_ns=stage.total_ns + took,
                min_ns=min(stage.min_ns, took),
                max_ns=max(stage.max_ns, took),
            )
        elif kind is not Process:
            observed = getattr(collected, _LISTS[kind])
            if isinstance(event, TrialSubmitted | TrialEnded | TrialKilled | WorkerDied):
                if event.trial is None:  # a worker died between trials
                    continue
                observed = observed[event.trial, event.attempt]
            elif isinstance(event, StopDecided):
                observed = observed[event.trial]
            elif isinstance(event, ProcessExited):
                observed = observed[event.process]
            observed.append(EventOfProcess(process, event))
    collected.events = count
    return collected


class Timeline:
    """Turns readings of any process into nanoseconds since the start of the deploy step (else: since the first reading)."""

    def __init__(self, collected: Collected) -> None:
        self.alignment = Alignment(collected.processes)
        self._offsets = {id(process): self.alignment.offset_ns(process) for process in collected.processes}
        deploys = [self._aligned(seen.process, seen.event.t) for seen in collected.steps_started if seen.event.step == "deploy"]
        firsts = [self._aligned(process, process.t) for process in collected.processes]
        self.start_ns = min(deploys or firsts, default=0)

    def at(self, process: Process, t: int) -> int:
        """Return a process's reading as nanoseconds since the run's start."""
        return self._aligned(process, t) - self.start_ns

    def shift_ns(self, process: Process) -> int:
        """Return what to add to all of a process's readings."""
        return self._offsets[id(process)] - self.start_ns

    def seen_at(self, seen: EventOfProcess[E]) -> int:
        """Return when an event was written."""
        return self.at(seen.process, seen.event.t)

    def first(self, seen: Sequence[EventOfProcess[E]] | None) -> EventOfProcess[E] | None:
        """Return the earliest event, or None where there is none."""
        if not seen:
            return None
        return seen[0] if len(seen) == 1 else min(seen, key=self._order)

    def last(self, seen: Sequence[EventOfProcess[E]] | None) -> EventOfProcess[E] | None:
        """Return the latest event, or None where there is none."""
        return max(seen, key=self._order) if seen else None

    def uncertainty_ns(self, process: Process) -> int:
        """Return the uncertainty of `at` for readings of this process."""
        return self.alignment.uncertainty_ns if self.alignment.is_foreign(process) else 0

    def started_at(self) -> str | None:
        """Return the run's start as wall-clock time (UTC, ISO 8601) of the coordinator's host."""
        reference = self.alignment.reference
        if reference is None:
            return None
        wall = self.start_ns - reference.anchor_monotonic_ns + reference.anchor_wall_ns
        return datetime.datetime.fromtimestamp(wall / NANOSECONDS, datetime.UTC).isoformat(timespec="milliseconds")

    def clock(self) -> ClockRecord | None:
        """Return the run's start on the clocks of the coordinator's host."""
        reference = self.alignment.reference
        if reference is None:
            return None
        return ClockRecord(
            host=reference.host,
            boot_id=reference.boot_id,
            start_monotonic_ns=self.start_ns,
            start_wall_ns=self.start_ns - reference.anchor_monotonic_ns + reference.anchor_wall_ns,
            anchor_width_ns=reference.anchor_width_ns,
        )

    def _aligned(self, process: Process, t: int) -> int:
        return t + self._offsets[id(process)]

    def _order(self, seen: EventOfProcess[E]) -> tuple[int, int, int]:
        return self.seen_at(seen), seen.process.pid, seen.event.seq
