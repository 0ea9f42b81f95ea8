"""What the supervisor knows of a run from its events: the current step, the open attempts, the counts for progress."""

from __future__ import annotations

from dataclasses import dataclass, field

from tuneoff.events import schema
from tuneoff.experiment.spec import ExperimentSpec
from tuneoff.matrix.listener import LiveRun


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
    epochs: int = 0
    stop_epoch: int | None = None  # a decision to stop was seen
    killed: bool = False
    value: float | None = None
    gone_since_ns: int | None = None


@dataclass(slots=True, kw_only=True)
class Tracker:
    """Takes events in; memory grows with open attempts only."""

    experiment: ExperimentSpec
    run_id: str
    step: str = "start"
    step_started_ns: int | None = None
    deploy_started_ns: int | None = None
    undeployed: bool = False
    open: dict[tuple[str, int], OpenAttempt] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    submitted: int = 0
    epochs: int = 0
    incumbent: float | None = None
    step_error: tuple[str, str, schema.Charged | None] | None = None  # step, text, charged: the first one
    best_trial: str | None = None
    tested: bool = False

    def take(self, process: schema.Process, event: schema.Event) -> None:
        """Take one event in."""
        if isinstance(event, schema.Epoch):
            self._epoch(event)
        elif isinstance(event, schema.Reported):
            attempt = self.open.get((event.trial, event.attempt))
            if attempt is not None:
                attempt.last_event_ns = event.t
        elif isinstance(event, schema.TrialSubmitted):
            self.submitted += event.attempt == 1
        elif isinstance(event, schema.TrialStarted):
            if event.attempt > 1:  # the failed attempt before it is superseded: no failed trial
                self.counts["failed"] = self.counts.get("failed", 0) - 1
            self.open[event.trial, event.attempt] = OpenAttempt(
                trial=event.trial,
                attempt=event.attempt,
                pid=process.pid,
                process_started_ns=process.process_started_ns,
                started_ns=event.t,
                last_event_ns=event.t,
                slot=event.slot,
            )
        elif isinstance(event, schema.TrialLoaded):
            attempt = self.open.get((event.trial, event.attempt))
            if attempt is not None:
                attempt.last_event_ns = event.t
        elif isinstance(event, schema.TrialEnded):
            self._ended(event)
        elif isinstance(event, schema.StopDecided):
            for key, attempt in self.open.items():
                if key[0] == event.trial:
                    attempt.stop_epoch = event.epoch
        else:
            self._step(event)

    def live(self, now_ns: int) -> LiveRun:
        """Return the progress at a moment."""
        started = self.deploy_started_ns if self.deploy_started_ns is not None else now_ns
        budget = self.experiment.budget
        return LiveRun(
            run_id=self.run_id,
            step=self.step,
            seconds=(now_ns - started) / 1e9,
            trials=budget.trials,
            epochs_per_trial=budget.epochs_per_trial,
            submitted=self.submitted,
            running=len(self.open),
            completed=self.counts.get("completed", 0),
            pruned=self.counts.get("pruned", 0),
            failed=self.counts.get("failed", 0),
            cancelled=self.counts.get("cancelled", 0),
            epochs=self.epochs,
            incumbent=self.incumbent,
        )

    def _epoch(self, event: schema.Epoch) -> None:
        self.epochs += 1
        attempt = self.open.get((event.trial, event.attempt))
        if attempt is None:
            return
        attempt.epochs, attempt.last_event_ns = event.epoch, event.t
        value = event.metrics.get(self.experiment.objective.metric)
        if value is not None and self.experiment.objective.is_better(value, than=attempt.value):
            attempt.value = value

    def _ended(self, event: schema.TrialEnded) -> None:
        attempt = self.open.pop((event.trial, event.attempt), None)
        if attempt is None:  # the trial's own end came first, or it never started
            return
        self.counts[event.state] = self.counts.get(event.state, 0) + 1
        objective = self.experiment.objective
        if event.state == "completed" and attempt.value is not None and objective.is_better(attempt.value, than=self.incumbent):
            self.incumbent = attempt.value

    def _step(self, event: schema.Event) -> None:
        if isinstance(event, schema.StepStarted):
            self.step, self.step_started_ns = event.step, event.t
            if event.step == "deploy":
                self.deploy_started_ns = event.t
        elif isinstance(event, schema.StepEnded):
            self.step_started_ns = None
            if event.error is not None and self.step_error is None:
                self.step_error = (event.step, event.error, event.charged)
            if event.step == "undeploy":
                self.undeployed = event.error is None
        elif isinstance(event, schema.BestKnown):
            self.best_trial = event.trial
        elif isinstance(event, schema.Tested):
            self.tested = True
