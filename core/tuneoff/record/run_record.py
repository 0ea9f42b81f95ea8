"""Records: RunRecord ⊃ TrialRecord ⊃ AttemptRecord ⊃ EpochRecord. Frozen, checked at birth, stored as `run.json`.

Times are integers: nanoseconds since the run's start (the start of its deploy step), so that parts sum to their whole exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec

from tuneoff.base.files import PLAIN_NAME
from tuneoff.base.last import remembers_last
from tuneoff.experiment.spec import RunSpec, run_spec_from_json
from tuneoff.record.events.schema import STEPS, Charged, Step, TrialName
from tuneoff.record.metric_value import MetricValue

# history: 1 = first, 2 = slots by the presence of processes, 3 = what reports add is not what a trial adds, 4 = of one execution,
# 5 = a cache beside `end.json`, which is of the same version
FORMAT_VERSION = 5

TrialState = Literal["completed", "pruned", "failed", "cancelled", "timed_out"]
AttemptState = Literal["completed", "pruned", "failed", "cancelled", "timed_out", "superseded"]
RunStatus = Literal["done", "failed", "timeout", "skipped", "interrupted"]
FAILED = ("failed", "timeout")  # statuses of runs that were tried and came to nothing


class EpochRecord(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One epoch of one attempt. A struct, not a dataclass: a run may have half a million."""

    epoch: int
    ended_ns: int  # trained, validated, kept; the report begins, if there is one
    train_ns: int
    validate_ns: int
    checkpoint_ns: int = 0
    metrics: dict[str, float | None]  # None: not finite, see `non_finite`
    is_reported: bool = True  # False: the framework is not told of it
    report_began_ns: int | None = None  # None: at `ended_ns`
    reported_ns: int | None = None  # the report returned; None: it never did, or there is none
    non_finite: dict[str, str] | None = None
    saved: bool = False
    restored: bool = False  # trained by an earlier attempt, from whose checkpoint this one went on
    cpu_ns: int | None = None  # CPU time of the attempt at `ended_ns`
    reported_cpu_ns: int | None = None  # and at `reported_ns`
    items: int | None = None  # that it was trained on; None: nobody counted them
    phases: dict[str, int] | None = None  # ns of each phase, of training and validation; None: nobody timed them

    def __post_init__(self) -> None:
        if self.epoch < 1 or self.train_ns < 0 or self.validate_ns < 0 or self.checkpoint_ns < 0:
            raise ValueError(
                f"`epoch >= 1` and durations of at least 0 must hold, but got {self.epoch=}, {self.train_ns=}, "
                f"{self.validate_ns=}, {self.checkpoint_ns=}"
            )
        times = self.phases.values() if self.phases else ()
        if (self.items or 0) < 0 or (times and (min(times) < 0 or sum(times) > self.train_ns + self.validate_ns)):
            rule = "`items >= 0` and phases that take no longer than training and validation must hold"
            raise ValueError(f"{rule}, but got {self.items=}, {self.phases=} in {self.train_ns + self.validate_ns} ns")


class AttemptRecord(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One try at a trial, in one process on one slot; `slot` and `started_ns` are None if no process ever took it up."""

    attempt: int
    state: AttemptState
    cause: str | None = None
    charged: Charged | None = None
    ended_by: str = "trial"  # trial | coordinator | supervisor | derivation (nobody saw the end: the last sign of life)
    uncertainty_ns: int = 0  # of `ended_ns`
    submitted_ns: int | None = None  # the framework handed it over for execution
    process: str | None = None  # host:pid:start, the same for all attempts of a process
    process_role: str | None = None
    process_started_ns: int | None = None
    imported_ns: int | None = None  # first attempt of a process only
    exited_ns: int | None = None  # when the process was seen to be gone, if anybody saw it
    slot: int | None = None
    waited_ns: int = 0  # for a slot
    started_ns: int | None = None  # it has its slot and its ticket
    loaded_ns: int | None = None  # data and model are there
    ended_ns: int | None = None
    threads: int | None = None
    seed: int | None = None
    device: str | None = None
    cpu_ns: int | None = None  # CPU time during the attempt, children included; None: its process was killed
    process_cpu_ns: int | None = None  # CPU time that the process had used before the attempt
    cpus_allowed: int | None = None  # processors that the process was allowed to use
    peak_rss_bytes: int | None = None
    visible: str | msgspec.UnsetType = msgspec.UNSET  # accelerators that its process saw, of a run whose slots have devices
    epochs: tuple[EpochRecord, ...] = ()

    def __post_init__(self) -> None:
        if self.started_ns is not None:
            if self.slot is None or self.ended_ns is None:
                raise ValueError(f"a started attempt needs a slot and an end, but got {self.slot=}, {self.ended_ns=}")
            if self.ended_ns < self.started_ns:
                raise ValueError(f"`started_ns <= ended_ns` must hold, but got {self.started_ns} and {self.ended_ns}")
        if self.attempt < 1:
            raise ValueError(f"attempts are counted from 1, but got {self.attempt}")

    @property
    def epochs_trained(self) -> int:
        """Epochs that it trained itself: those that it restored from an earlier attempt's checkpoint are the first ones."""
        return sum(not epoch.restored for epoch in self.epochs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRecord:
    """A process that was started for a trial and ended before an attempt: in its imports, or refused by the budget."""

    process: str  # host:pid:start
    started_ns: int
    ended_ns: int  # when it was seen to be gone, else its last line


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """One trial: its configuration, how it ended, its value, its attempts in order."""

    trial: TrialName
    configuration: Mapping[str, Any]
    digest: str
    state: TrialState
    cause: str | None = None
    charged: Charged | None = None
    framework_id: str | None = None
    value: float | None = None  # best finite validation value over the epochs of the last attempt, whose checkpoint exists
    value_epoch: int | None = None
    tie_loss: float | None = None  # validation loss of that epoch, where the workload gives one
    stop_epoch: int | None = None  # the losing epoch: a decision to stop fell on its report
    attempts: tuple[AttemptRecord, ...] = ()

    def __post_init__(self) -> None:
        if (self.value is None) != (self.value_epoch is None):
            raise ValueError(f"value and epoch come together, but got {self.value=}, {self.value_epoch=}")
        if self.state == "failed" and not self.cause:
            raise ValueError(f"a failed trial needs its cause, but {self.trial!r} has none")

    @property
    def used_ticket(self) -> bool:
        """Whether a process took it up, and with it a ticket of the budget."""
        return any(attempt.started_ns is not None for attempt in self.attempts)

    def ended_early(self, planned_epochs: int) -> bool:
        """Tell whether its training ended by itself: it completed with fewer epochs than planned."""
        return self.state == "completed" and len(self.attempts[-1].epochs) < planned_epochs

    @property
    def epochs_trained(self) -> int:
        """Epochs trained over all attempts; one that was restored was trained, also where its event was lost with its process."""
        if len(self.attempts) == 1:
            return len(self.attempts[0].epochs)
        epochs = [epoch for attempt in self.attempts for epoch in attempt.epochs]
        trained = [epoch.epoch for epoch in epochs if not epoch.restored]
        return len(trained) + len({epoch.epoch for epoch in epochs if epoch.restored} - {*trained})


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One lifecycle step's method: called, returned; `ended_ns` is None if it never returned."""

    step: Step
    started_ns: int
    ended_ns: int | None
    error: str | None = None
    charged: Charged | None = None

    def __post_init__(self) -> None:
        if self.ended_ns is not None and self.ended_ns < self.started_ns:
            raise ValueError(f"`started_ns <= ended_ns` must hold, but got {self.started_ns} and {self.ended_ns}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalRecord:
    """The framework asked for a trial beyond the budget (`reason`: trials | wall_clock)."""

    trial: TrialName
    reason: str
    refused_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRecord:
    """All timings of one stage of the framework's own work (ask, tell, ...)."""

    name: str
    count: int
    total_ns: int
    min_ns: int
    max_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BestRecord:
    """The framework's best trial, with its own value for it, and core's; they agree unless a flag says otherwise."""

    trial: TrialName | None
    framework_value: float | None
    known_ns: int
    core_trial: TrialName | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRecord:
    """Scores of the best checkpoint on the test split."""

    __test__ = False  # no test class for pytest

    trial: TrialName
    scores: Mapping[str, float | None]  # None: not finite, see `non_finite`
    tested_ns: int
    checkpoint_sha256: str | None = None
    device: str = "cpu"
    non_finite: Mapping[str, str] | None = None
    cpu_ns: int | None = None  # CPU time of the test's own process


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredVariable:
    """One variable of Table 1: what was declared beside what was found, as JSON values; `agrees` is None if nothing can tell."""

    symbol: str  # wn, at, wcpu, ...
    name: str
    declared: Any
    found: Any
    unit: str
    agrees: bool | None
    how: str  # by what it was found, or why it was not


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockRecord:
    """The run's start (time 0 of all times) on the coordinator's clocks: what aligns samples with it."""

    host: str
    boot_id: str
    start_monotonic_ns: int
    start_wall_ns: int
    anchor_width_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagRecord:
    """Something a reader must know; `count` times."""

    name: str
    text: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class RunRecord:
    """One execution of a run: what it was, in which environment, and all that happened in it."""

    run_id: str
    execution_id: Annotated[str, msgspec.Meta(pattern=PLAIN_NAME)]  # folders are named after it
    specification: dict[str, Any]  # run_spec_to_json
    status: RunStatus
    reason: str | None = None  # why the status is not `done`
    charged: Charged | None = None
    started_at: str | None = None  # wall clock, UTC, ISO 8601
    versions: Mapping[str, Any] = field(default_factory=dict)  # framework, classes of sampler and pruner, what the adapter found
    environment: Mapping[str, Any] = field(default_factory=dict)  # Python, machine, packages, git, data, meter, limits, `after`
    steps: tuple[StepRecord, ...] = ()
    trials: tuple[TrialRecord, ...] = ()
    without_attempt: tuple[ProcessRecord, ...] = ()  # processes for a trial that ended before an attempt
    refusals: tuple[RefusalRecord, ...] = ()  # requests beyond the budget
    stages: tuple[StageRecord, ...] = ()  # the framework's own timed work
    storage: Mapping[str, int | None] = field(default_factory=dict)  # the framework's: what `storage_used` has; {}: nothing told
    best: BestRecord | None = None
    test: TestRecord | None = None
    flags: tuple[FlagRecord, ...] = ()
    declared: tuple[DeclaredVariable, ...] = ()
    clock: ClockRecord | None = None
    coordinators: tuple[str, ...] = ()  # host:pid:start of the processes that called the adapter
    clock_uncertainty_ns: int = 0  # of alignments across hosts; 0: one host
    events: int = 0  # lines read
    torn_lines: int = 0  # last lines that a killed process left unfinished
    metrics: Mapping[str, MetricValue] = field(default_factory=dict)
    format_version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        if self.format_version != FORMAT_VERSION:
            raise ValueError(f"`format_version == {FORMAT_VERSION}` must hold, but got {self.format_version}")
        if self.status != "done" and not self.reason:
            raise ValueError(f"a run that is {self.status} needs its reason, but got none")
        repeated = [name for name, count in Counter(trial.trial for trial in self.trials).items() if count > 1]
        if repeated:
            raise ValueError(f"trial ids must differ, but got repeatedly {', '.join(repeated[:3])}")
        if any(step.step not in STEPS for step in self.steps):
            raise ValueError(f"steps must be of {STEPS}, but got {[step.step for step in self.steps]}")

    @remembers_last
    def run_spec(self) -> RunSpec:
        """Return the run's specification, which was checked where the record was read."""
        return run_spec_from_json(self.specification)

    def step(self, name: Step) -> StepRecord | None:
        """Return a step, or None if it was not entered."""
        return next((step for step in self.steps if step.step == name), None)
