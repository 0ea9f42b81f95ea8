"""The progress of a run: what its supervisor knows of it from its events, and what it tells whoever shows it.

Known are the current step, the open attempts, and counts. It is shown by the command line's live progress, or by nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tuneoff.base import clock
from tuneoff.experiment.spec import ExperimentSpec
from tuneoff.record.events import schema


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRun:
    """A run at a moment, as the supervisor sees it in the event log."""

    run_id: str
    step: str
    seconds: float  # since the run's start
    trials: int  # the budget
    epochs_per_trial: int
    submitted: int = 0
    running: int = 0
    completed: int = 0
    pruned: int = 0
    failed: int = 0
    cancelled: int = 0
    epochs: int = 0
    incumbent: float | None = None  # best validation value of a completed trial

    @property
    def ended(self) -> int:
        return self.completed + self.pruned + self.failed + self.cancelled

    @property
    def seconds_left(self) -> float | None:
        """Estimated from the rate of ended trials; None before the first."""
        return self.seconds / self.ended * (self.trials - self.ended) if self.ended else None


class Listener:
    """Receives progress, and shows nothing of it; every method of who derives from it returns at once."""

    def noted(self, text: str) -> None:
        """One line on the whole matrix, or, with `! ` before it, on what is wrong with the run that has just ended."""

    def begun(self, run_ids: Sequence[str]) -> None:
        """The command begins to run these."""

    def run_started(self, position: int, total: int, label: str, run_id: str) -> None:
        """Run `position` (from 1) of the `total` that this command runs starts."""

    def run_progress(self, live: LiveRun) -> None:
        """Called a few times per second while a run lasts."""

    def run_ended(self, position: int, total: int, label: str, status: str, reason: str | None, seconds: float) -> None:
        """A run ended: status done, failed, timeout or interrupted; or this command does not run it: `seconds` is 0."""


@dataclass(slots=True, kw_only=True)
class OpenAttempt:
    """An attempt that started and has not ended."""

    trial: str
    attempt: int
    pid: int
    process_started_ns: int
    started_ns: int
    last_event_ns: int
    slot: int
    boot_id: str  # of the host; times of another host's events are those of their arrival
    role: str = "worker"  # of the process; `trial`: it runs this attempt alone and then exits
    epochs: int = 0
    in_report: bool = False  # it waits for the framework's decision
    stop_epoch: int | None = None  # a decision to stop was seen
    killed: bool = False
    over_memory_since_ns: int | None = None  # seen above its limit at every look since
    killed_by_kernel: bool = False  # for memory, in the control group of its slot
    value: float | None = None
    seen_ns: int | None = None  # when its process was last seen alive
    gone_since_ns: int | None = None


@dataclass(slots=True, kw_only=True)
class Tracker:
    """Takes events in; memory grows with open attempts and failed trials only."""

    experiment: ExperimentSpec
    run_id: str
    step: str = "start"
    step_started_ns: int | None = None
    steps: dict[str, int] = field(default_factory=dict)  # when each began
    undeploy_ended: bool = False
    undeployed: bool = False
    open: dict[tuple[str, int], OpenAttempt] = field(default_factory=dict)
    arrived: list[schema.Process] = field(default_factory=list)  # new processes of one trial each; the watch empties it
    counts: dict[str, int] = field(default_factory=dict)
    submitted: int = 0
    epochs: int = 0
    incumbent: float | None = None
    _failed: set[str] = field(default_factory=set)
    failed_for_good: set[str] = field(default_factory=set)  # and will not be tried again
    _limited: set[str] = field(default_factory=set)  # killed for a limit: not tried again

    def take(self, process: schema.Process, event: schema.Event) -> None:
        """Take one event in."""
        t = event.t if process.boot_id == clock.boot_id() else clock.monotonic_ns()
        if isinstance(event, schema.Epoch):
            self._epoch(event, t)
        elif isinstance(event, schema.Reported | schema.TrialLoaded):
            if (attempt := self.open.get((event.trial, event.attempt))) is not None:
                attempt.last_event_ns, attempt.in_report = t, False
        elif isinstance(event, schema.TrialSubmitted):
            self.submitted += event.attempt == 1
        elif isinstance(event, schema.TrialStarted):
            if event.attempt > 1:  # the attempt before it is superseded
                self._failed.discard(event.trial)
            self.open[event.trial, event.attempt] = OpenAttempt(
                trial=event.trial,
                attempt=event.attempt,
                pid=process.pid,
                process_started_ns=process.process_started_ns,
                started_ns=t,
                last_event_ns=t,
                slot=event.slot,
                boot_id=process.boot_id,
                role=process.role,
            )
        elif isinstance(event, schema.TrialEnded):
            self._ended(event)
        elif isinstance(event, schema.WorkerDied):
            attempt = self.open.get((event.trial or "", event.attempt))
            if attempt is not None and attempt.boot_id != clock.boot_id():  # nobody here can see the process itself
                attempt.gone_since_ns = event.t
        elif isinstance(event, schema.TrialKilled):
            self._limited.add(event.trial)
        elif isinstance(event, schema.StopDecided):
            for key, attempt in self.open.items():
                if key[0] == event.trial:
                    attempt.stop_epoch = event.epoch
        elif isinstance(event, schema.Process):
            if event.role in schema.OF_ONE_TRIAL:
                self.arrived.append(event)
        else:
            self._step(event)

    def live(self, now_ns: int) -> LiveRun:
        """Return the progress at a moment."""
        budget = self.experiment.budget
        return LiveRun(
            run_id=self.run_id,
            step=self.step,
            seconds=(now_ns - self.steps.get("deploy", now_ns)) / 1e9,
            trials=budget.trials,
            epochs_per_trial=budget.epochs_per_trial,
            submitted=self.submitted,
            running=len(self.open),
            completed=self.counts.get("completed", 0),
            pruned=self.counts.get("pruned", 0),
            failed=len(self._failed),
            cancelled=self.counts.get("cancelled", 0),
            epochs=self.epochs,
            incumbent=self.incumbent,
        )

    def _epoch(self, event: schema.Epoch, t: int) -> None:
        self.epochs += not event.restored
        attempt = self.open.get((event.trial, event.attempt))
        if attempt is None:
            return
        attempt.epochs, attempt.last_event_ns, attempt.in_report = event.epoch, t, event.is_reported
        value = event.metrics.get(self.experiment.objective.metric)
        if value is not None and self.experiment.objective.is_better(value, than=attempt.value):
            attempt.value = value

    def _ended(self, event: schema.TrialEnded) -> None:
        attempt = self.open.pop((event.trial, event.attempt), None)
        if attempt is None:  # the trial's own end came first, or it never started
            return
        if event.state == "failed":
            self._failed.add(event.trial)
            if event.charged == "workload" or event.trial in self._limited or event.attempt > self.experiment.failures.retries:
                self.failed_for_good.add(event.trial)
        else:
            self.counts[event.state] = self.counts.get(event.state, 0) + 1
        objective = self.experiment.objective
        if event.state == "completed" and attempt.value is not None and objective.is_better(attempt.value, than=self.incumbent):
            self.incumbent = attempt.value

    def _step(self, event: schema.Event) -> None:
        if isinstance(event, schema.StepStarted):
            self.step, self.step_started_ns = event.step, event.t
            self.steps[event.step] = event.t
        elif isinstance(event, schema.StepEnded):
            self.step_started_ns = None
            if event.step == "undeploy":
                self.undeploy_ended, self.undeployed = True, event.error is None
