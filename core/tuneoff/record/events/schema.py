"""The typed, versioned schema of event lines (docs/results.md). One struct per type; times are monotonic nanoseconds.

Each file begins with a `process` event that holds what is the same for all lines of the file: host, boot id, pid, wall-clock
anchor, execution id. Every line has a sequence number `seq` from 0 and the reading `t`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from tuneoff.base.files import PLAIN_NAME

SCHEMA_VERSION = 2  # history: 1 = first, 2 = `process_exited`

Step = Literal["deploy", "setup", "trial", "collect", "test", "metrics", "undeploy"]
STEPS: tuple[Step, ...] = ("deploy", "setup", "trial", "collect", "test", "metrics", "undeploy")
STORAGE_FIGURES = ("operations", "client_cpu_ns", "bytes", "server_cpu_ns")  # of `storage_used`
OF_ONE_TRIAL = ("trial", "pod")  # roles of processes that are started for one trial and then exit
EndState = Literal["completed", "pruned", "failed", "cancelled"]
TrialName = Annotated[str, msgspec.Meta(pattern=PLAIN_NAME)]  # files are named after it; of events `reader` checks it
Charged = Literal["framework", "workload", "infrastructure", "user"]
Limit = Literal["time", "memory"]  # of an attempt


class Event(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="type"):
    """Base of all events."""

    seq: int
    t: int  # CLOCK_MONOTONIC, nanoseconds


class Process(Event, frozen=True, gc=False, tag="process"):
    """First line of each file.

    A `pod` may be on another host, with clocks of its own; its lines came through its log. It knows no slot: the `slot` of its
    `trial_started` says nothing, records give it one by its lifetime. A `pod-worker` runs many trials, on a slot of its own.
    """

    version: int
    role: str  # coordinator | worker | trial | supervisor | pod | pod-worker
    pid: int
    host: str
    boot_id: str
    execution_id: str
    anchor_monotonic_ns: int
    anchor_wall_ns: int
    anchor_width_ns: int
    process_started_ns: int  # when the kernel started the process (10 ms grain), since boot
    slept_ns: int = 0  # how long the host had been suspended since boot by then, which monotonic time leaves out

    @property
    def began_ns(self) -> int:
        """When the kernel started the process, monotonic."""
        return self.process_started_ns - self.slept_ns

    @property
    def name(self) -> str:
        """The process as records name it: its pid alone may be used again."""
        return f"{self.host}:{self.pid}:{self.process_started_ns}"


class StepStarted(Event, frozen=True, gc=False, tag="step_started"):
    """The coordinator entered a lifecycle step's method."""

    step: Step


class StepEnded(Event, frozen=True, gc=False, tag="step_ended"):
    """A lifecycle step's method returned or failed."""

    step: Step
    error: str | None = None
    charged: Charged | None = None


class TrialSubmitted(Event, frozen=True, gc=False, tag="trial_submitted"):
    """The framework's scheduler handed a configuration over for execution."""

    trial: str
    configuration: dict[str, Any]
    framework_id: str | None = None
    attempt: int = 1


class TrialStarted(Event, frozen=True, gc=False, tag="trial_started"):
    """`run_trial` was entered, has its slot and its budget ticket. Busy time begins here."""

    trial: str
    slot: int
    configuration: dict[str, Any]
    digest: str
    seed: int
    threads: int
    attempt: int = 1
    framework_id: str | None = None
    waited_ns: int = 0  # for a slot; more than 0 means that more than `workers.count` trials overlapped
    imported_ns: int | None = None  # when the process had its imports; the first trial of a process only
    process_cpu_ns: int | None = None  # CPU time of the process, waited-for children included, when the attempt began
    cpus_allowed: int | None = None  # processors that the process may run on
    visible: str | None = None  # CUDA_VISIBLE_DEVICES of the process, of a run whose slots have devices


class TrialLoaded(Event, frozen=True, gc=False, tag="trial_loaded"):
    """Data and model are there."""

    trial: str
    attempt: int = 1
    device: str = "cpu"


class Epoch(Event, frozen=True, gc=False, tag="epoch"):
    """An epoch was trained, validated and, where it improved, kept as checkpoint. `t` is the moment before its report, if any."""

    trial: str
    epoch: int
    metrics: dict[str, float | None]  # None: not finite; the text is in `non_finite`
    train_ns: int
    validate_ns: int
    checkpoint_ns: int = 0
    attempt: int = 1
    non_finite: dict[str, str] | None = None
    saved: bool = False
    restored: bool = False  # not trained here: an earlier attempt did, from whose checkpoint this one goes on
    cpu_ns: int | None = None  # of the attempt up to here
    is_reported: bool = True  # False: the framework is not told of it, or not yet
    items: int | None = None  # that it was trained on, where the training counts them
    phases: dict[str, int] | None = None  # ns of each phase that the training timed


class Reported(Event, frozen=True, gc=False, tag="reported"):
    """`report` returned (or raised); `stop` is its decision. From the epoch's `t`, or from `began`, to here the trial waited."""

    trial: str
    epoch: int
    stop: bool = False
    attempt: int = 1
    cpu_ns: int | None = None  # of the attempt up to here
    began: int | None = None  # of a report at the end of a training that ended by itself, some time after its last epoch


class TrialEnded(Event, frozen=True, gc=False, tag="trial_ended"):
    """An attempt ended. One end per attempt: the trial's own, else the first that an observer wrote."""

    trial: str
    state: EndState
    epochs: int
    attempt: int = 1
    cause: str | None = None
    charged: Charged | None = None
    ended_early: bool = False  # it completed before its planned epochs: the training ended by itself, as it says itself
    by: str = "trial"  # trial | coordinator | supervisor
    uncertainty_ns: int = 0
    cpu_ns: int | None = None  # of the trial's process and its children during the attempt
    peak_rss_bytes: int | None = None
    printed: tuple[int, int] | None = None  # where the run's log has what was printed meanwhile, if anything was: begin, end


class TrialKilled(Event, frozen=True, gc=False, tag="trial_killed"):
    """An observer is about to kill a trial's process, for the limit that it exceeded, or its own code is: why it ends."""

    trial: str
    cause: str
    charged: Charged
    attempt: int = 1
    limit: Limit | None = None


class RunStopped(Event, frozen=True, gc=False, tag="run_stopped"):
    """The supervisor begins to end the run, or saw it end before its time: why the trials that run end here.

    `cancels`: it ends the run itself (an interruption, a limit), so these trials are cancelled; else they failed.
    """

    cause: str
    charged: Charged
    cancels: bool = False


class WorkerDied(Event, frozen=True, gc=False, tag="worker_died"):
    """An adapter saw a worker or trial process end without an end of its trial."""

    trial: str | None
    cause: str
    attempt: int = 1
    exit_code: int | None = None


class TrialRefused(Event, frozen=True, gc=False, tag="refused"):
    """`run_trial` got no budget ticket: the framework asked for more than the budget. `reason`: trials | wall_clock."""

    trial: str
    reason: str
    configuration: dict[str, Any] | None = None


class StopDecided(Event, frozen=True, gc=False, tag="stop_decided"):
    """The framework decided to stop a trial after `epoch` (coordinator's clock)."""

    trial: str
    epoch: int


class GoalMet(Event, frozen=True, gc=False, tag="goal_met"):
    """Who ends the run at its goal (`objective.stop`) learned that a trial met it, and asks for no more."""

    trial: str
    by: str = ""  # the framework's means; "": it has none, and core keeps further trials back


class BestKnown(Event, frozen=True, gc=False, tag="best_known"):
    """The framework named its best trial."""

    trial: str | None
    value: float | None = None


class Tested(Event, frozen=True, gc=False, tag="tested"):
    """The best checkpoint was scored on the test split."""

    trial: str
    scores: dict[str, float | None]  # None: not finite; the text is in `non_finite`
    checkpoint_sha256: str | None = None
    device: str = "cpu"
    non_finite: dict[str, str] | None = None
    cpu_ns: int | None = None  # of the test's own process


class Flag(Event, frozen=True, gc=False, tag="flag"):
    """Something a reader of the results must know; `name` is stable, `text` explains."""

    name: str
    text: str


class ProcessExited(Event, frozen=True, gc=False, tag="process_exited"):
    """A trial's process was seen to be gone, whether or not it came to run its trial; `process` is host:pid:start."""

    process: str


class Stage(Event, frozen=True, gc=False, tag="stage"):
    """A timed stage of the framework's own work for a trial: ask, dispatch, tell, stop, ... `t` is its end."""

    name: str
    duration_ns: int
    trial: str | None = None


class StorageUsed(Event, frozen=True, gc=False, tag="storage_used"):
    """What all trials together asked of the framework's storage, and what that cost; None: nobody could tell.

    `bytes`: how much it grew. `client_cpu_ns`: of the workers, in ask, report and tell. `server_cpu_ns`: of a server that the run
    itself started.
    """

    operations: int  # SQL statements and commits, Redis commands, calls of a server, or reads and appends of a journal
    client_cpu_ns: int
    bytes: int | None = None
    server_cpu_ns: int | None = None


AnyEvent = (
    Process
    | StepStarted
    | StepEnded
    | TrialSubmitted
    | TrialStarted
    | TrialLoaded
    | Epoch
    | Reported
    | TrialEnded
    | TrialKilled
    | RunStopped
    | WorkerDied
    | TrialRefused
    | StopDecided
    | GoalMet
    | BestKnown
    | Tested
    | Flag
    | ProcessExited
    | Stage
    | StorageUsed
)
