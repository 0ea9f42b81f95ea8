"""The ledger of a run: every trial that Katib made, from the first sight of it to its end, and the events that say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tuneoff.base import clock
from tuneoff.base.identity import is_finite
from tuneoff.experiment.spec import Objective
from tuneoff.experiment.translation import LIST_INDEX
from tuneoff.record.events.schema import EndState, Epoch, Event, TrialEnded, TrialStarted
from tuneoff.record.run_context import RunContext
from tuneoff.run.trial.run_trial import OUT_OF_TIME
from tuneoff_adapters.katib.offers import CAPABILITIES
from tuneoff_adapters.katib.plan import KatibPlan
from tuneoff_adapters.kubernetes.clock_skew import Creations, PodClock
from tuneoff_adapters.kubernetes.diagnosis import died_collector, trial_of
from tuneoff_adapters.kubernetes.endings import PodEnding, PodLimits, decided_at, ending_of
from tuneoff_adapters.kubernetes.followed_pod import FollowedPod, PodLog
from tuneoff_adapters.kubernetes.layout import trial_id
from tuneoff_adapters.kubernetes.resources import Object, has, is_unschedulable, name_of, terminal

REPEATED = "configuration_repeated"  # flag
GOAL_REACHED = "ExperimentGoalReached"  # reason of a condition


@dataclass(slots=True, kw_only=True)
class FollowedTrial(FollowedPod):
    """`seen_ns` is the first sight of the Trial object."""

    trial_id: str
    configuration: Mapping[str, Any]
    planned_epochs: int
    obj: Object  # the Trial, as last seen
    is_deleted: bool = False  # the Trial object
    over_ns: int | None = None  # Katib ended it, or it was deleted
    unscheduled_ns: int | None = None  # first seen without a node that would take it
    is_pod_sought: bool = False  # though the trial is over, no pod of it was seen
    has_no_pod: bool = False  # the API server says so, after the trial's end
    is_announced: bool = False
    start_t: int | None = None  # of `trial_started`, by the pod's clock
    value: float | None = None
    state: EndState | None = None  # how it ended: by its own word, else by ours

    def take_pod(self, kind: str, pod: Object, t: int) -> None:
        FollowedPod.take_pod(self, kind, pod, t)
        if self.unscheduled_ns is None and is_unschedulable(pod):
            self.unscheduled_ns = t

    def take_no_pod(self) -> None:
        self.has_no_pod = True

    @property
    def is_log_done(self) -> bool:
        """Whether nothing more can come from its pod; one whose log was never opened has nothing to say.

        Trials and pods are watched apart, so a trial's end may be seen long before its pod is.
        """
        if self.is_log_open:
            return self.was_log_read
        return self.gone_ns is not None if self.pod is not None else self.has_no_pod

    @property
    def is_due(self) -> bool:
        """Whether it has ended without a word: nothing more can come, and Katib or a limit has ended it."""
        return self.state is None and self.is_log_done and (self.over_ns is not None or self.killed_ns is not None)

    @property
    def disagreement(self) -> tuple[str, str] | None:
        """A flag (name, text) where Katib takes it for something else than it does itself; else None."""
        if self.state != "completed" or self.is_deleted or has(self.obj, "Succeeded"):
            return None
        died = died_collector(self.pod or {})
        if died is not None:
            return "collector_died", died
        if has(self.obj, "MetricsUnavailable"):
            return "metrics_unavailable", f"Katib has no metrics of trial {self.name}, which reported {self.epochs} epochs"
        return None

    def take(self, event: Event, t: int, objective: Objective) -> None:
        """Take in an event of its log that arrived at `t`."""
        if isinstance(event, TrialStarted):
            self.start_t = event.t
        elif isinstance(event, Epoch):
            self.epochs = event.epoch
            value = event.metrics.get(objective.metric)
            if value is not None and is_finite(value) and objective.is_better(value, than=self.value):
                self.value = value
        elif isinstance(event, TrialEnded):
            self.state = event.state
        if self.start_t is not None:  # however late it arrives, an event tells how long its trial has run at least
            start_ns = t - max(0, event.t - self.start_t)
            self.started_ns = start_ns if self.started_ns is None else min(self.started_ns, start_ns)

    @property
    def is_complete(self) -> bool:
        """Whether the records call it so."""
        return self.state == "completed" or (self.epochs >= self.planned_epochs and self.state != "failed")


class TrialLedger:
    """Takes in what the cluster tells, in any order and more than once. Written by one thread."""

    def __init__(self, context: RunContext, plan: KatibPlan) -> None:
        self._context, self._plan, self._events = context, plan, context.events
        experiment = context.spec.experiment
        self._objective, self._planned = experiment.objective, experiment.budget.epochs_per_trial
        self._limits = PodLimits(deadline_seconds=plan.pod_seconds, memory_bytes=context.trial_context.memory_bytes)
        assert context.events.path is not None
        self._clock = PodClock(context.events.path)
        self._creations = Creations(self._clock, clock.monotonic_ns())
        self._cut_ns: int | None = None
        self._by_index: dict[str, str] = {}  # Katib's name of the trial that has an index of the list
        self.trials: dict[str, FollowedTrial] = {}  # by Katib's name
        self.over_budget: set[str] = set()
        self.is_goal_met = False
        self.repeated: dict[str, str] = {}  # of them those with a listed configuration that another trial has: that one's name
        self.pods: dict[str, Object] = {}  # by name, as last seen, while they are there

    def __iter__(self) -> Iterator[FollowedTrial]:
        return iter(list(self.trials.values()))  # a copy: the main thread may look while the ledger is written

    def reports(self) -> dict[str, FollowedTrial]:
        """Return the trials by Katib's names; that of a repeated configuration stands for the trial which has it."""
        return {**self.trials, **{name: self.trials[twin] for name, twin in self.repeated.items()}}

    # What the cluster tells

    def take_experiment(self, experiment: Object, t: int) -> None:
        """Take in the Experiment as it was first seen: by it, the server's clock is known."""
        self._creations.note(experiment, t)

    def take_end(self, experiment: Object, t: int) -> None:
        """Take in the Experiment as it has succeeded, which it may have by its goal."""
        optimum = self.trials.get(experiment["status"].get("currentOptimalTrial", {}).get("bestTrialName"))
        is_goal_met = any(condition.get("reason") == GOAL_REACHED for condition in experiment["status"]["conditions"])
        if is_goal_met and not self.is_goal_met and optimum is not None:
            self.is_goal_met = True
            self._events.write("goal_met", t=t, trial=optimum.trial_id, by=CAPABILITIES.stops_at_goal)

    def take_trial(self, kind: str, obj: Object, t: int) -> FollowedTrial | None:
        """Take in a Trial object, and its pod if that was seen first; None where it is not to be trained.

        (Katib may make more trials than it was told to, and give a listed configuration more than once.)
        """
        name = name_of(obj)
        if name in self.over_budget:
            return None
        trial = self.trials.get(name)
        if trial is None:
            values = {item["name"]: item["value"] for item in obj.get("spec", {}).get("parameterAssignments") or []}
            configuration, identity = self._plan.space.decode(values), trial_id(name)
            twin = self._by_index.setdefault(values[LIST_INDEX], name) if LIST_INDEX in self._plan.space.dimensions else name
            if twin != name:
                self.over_budget.add(name)
                self.repeated[name] = twin
                text = (
                    f"Katib gave configuration {values[LIST_INDEX]} of the list to {name} after {twin}: its controller lost an "
                    "answer of the suggestion service; it was not trained again"
                )
                self._context.flag(REPEATED, text)
                return None
            if len(self.trials) >= self._plan.trials:
                self.over_budget.add(name)
                self._events.write("refused", trial=identity, reason="trials", configuration=configuration)
                return None
            context = self._context
            log = PodLog(context.run_dir, context.work_dir, context.execution_id, name, identity)
            trial = FollowedTrial(
                name=name,
                log=log,
                seen_ns=t,
                trial_id=identity,
                configuration=configuration,
                planned_epochs=self._planned,
                obj=obj,
            )
            self.trials[name] = trial
            self._creations.note(obj, t)
        trial.obj, trial.is_deleted = obj, kind == "DELETED"
        if trial.over_ns is None and (trial.is_deleted or terminal(obj) is not None):
            trial.over_ns = t
        if trial.pod is None:
            for pod in self.pods_of(name):
                trial.take_pod("ADDED", pod, t)
        return trial

    def take_pod(self, kind: str, pod: Object, t: int) -> FollowedTrial | None:
        """Take in a pod; return its trial, or None where it is not a trial's."""
        name = name_of(pod)
        if kind == "DELETED":
            self.pods.pop(name, None)
        else:
            self.pods[name] = pod
        trial = self.trials.get(trial_of(pod))
        if trial is not None:
            trial.take_pod(kind, pod, t)
        return trial

    def pods_of(self, katib_trial: str) -> list[Object]:
        """Return the pods of a trial, known or not, that are there."""
        return [pod for pod in self.pods.values() if trial_of(pod) == katib_trial]

    def take_line(self, trial: FollowedTrial, line: bytes, t: int) -> None:
        """Take in a line of a trial's log."""
        event = trial.log.take(line)
        if event is None:
            return
        if isinstance(event, TrialStarted):
            assert trial.log.process is not None
            self._announce(trial, self._clock.here(trial.log.process, event.t))
        trial.take(event, t, self._objective)

    # What follows from it

    def settle(self, now: int) -> None:
        """Write what is due: exits, and the ends of trials that will not say so themselves."""
        for trial in self:
            trial.write_exit(self._events, self._clock)
            if trial.is_due:
                self._end(trial, now)

    def kill(self, trial: FollowedTrial, ending: PodEnding) -> None:
        """Write that something kills a trial for a limit."""
        self._events.write("trial_killed", trial=trial.trial_id, cause=ending.cause, charged=ending.charged, limit=ending.limit)

    def cut(self, now: int) -> None:
        """Take note that the time of the run is used up: what ends from now on is cancelled, unless by its own word."""
        self._cut_ns = now

    def close(self, now: int, *, is_cut: bool) -> None:
        """Write what is known; `is_cut`: trials that have no end are ended, as their pods were deleted, or will be."""
        for trial in self:  # no start is to come any more, which must not be before
            self._announce(trial)
        self.settle(now)
        for trial in self:
            if trial.state == "completed" and trial.epochs < self._planned and has(trial.obj, "EarlyStopped"):
                trial.state = "pruned"  # it ended by itself just as Katib stopped it
                self._events.write("stop_decided", trial=trial.trial_id, epoch=decided_at(trial.obj, trial.epochs))
            if is_cut and trial.state is None:
                self._end(trial, now)

    def _announce(self, trial: FollowedTrial, started_ns: int | None = None) -> None:
        if not trial.is_announced:
            trial.is_announced = True
            self._events.write(
                "trial_submitted",
                t=self._creations.submitted(trial.obj, trial.seen_ns, started_ns),
                trial=trial.trial_id,
                configuration=dict(trial.configuration),
                framework_id=trial.name,
            )

    def _end(self, trial: FollowedTrial, now: int) -> None:
        """Write how a trial ended that did not say so itself."""
        self._announce(trial)
        if trial.killed_ns is not None:
            self._write_end(trial, PodEnding("failed"), now)
            return
        if self._cut_ns is not None and (trial.gone_ns or now) >= self._cut_ns:
            self._write_end(trial, PodEnding("cancelled", OUT_OF_TIME), now)
            return
        log = trial.log
        ending = ending_of(
            trial.obj, trial.pod, self._limits, trial.epochs, log.last_line, trial.is_log_whole, log.verdict, log.is_broken
        )
        if ending.stop_epoch is not None:
            self._events.write("stop_decided", trial=trial.trial_id, epoch=ending.stop_epoch)
        if ending.limit is not None:
            self.kill(trial, ending)
        elif ending.state == "failed":
            self._events.write("worker_died", trial=trial.trial_id, cause=ending.cause, exit_code=ending.exit_code)
        self._write_end(trial, ending, now)

    def _write_end(self, trial: FollowedTrial, ending: PodEnding, now: int) -> None:
        trial.state = ending.state
        trial.write_end(self._events, trial.trial_id, ending, trial.training_ended_ns or trial.gone_ns or now)
