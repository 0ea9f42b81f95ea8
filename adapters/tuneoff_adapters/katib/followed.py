"""One trial as it is followed: what Katib, its pod and its log have told of it so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tuneoff.base.clock import NANOSECONDS
from tuneoff.base.identity import is_finite
from tuneoff.experiment.spec import Objective
from tuneoff.record.events.schema import EndState, Epoch, Event, TrialEnded, TrialStarted
from tuneoff_adapters.katib.results import Outcome
from tuneoff_adapters.kubernetes.diagnosis import died_collector
from tuneoff_adapters.kubernetes.followed_pod import FollowedPod
from tuneoff_adapters.kubernetes.resources import Object
from tuneoff_adapters.kubernetes.status import has, is_unschedulable, terminal

_NOTICEABLE_NS = NANOSECONDS


@dataclass(slots=True, kw_only=True)
class FollowedTrial(FollowedPod):
    """`seen_ns` is the first sight of the Trial object."""

    trial_id: str
    configuration: Mapping[str, Any]
    thing: Object  # the Trial, as last seen
    is_deleted: bool = False  # the Trial object
    over_ns: int | None = None  # Katib ended it, or it was deleted
    unscheduled_ns: int | None = None  # first seen without a node that would take it
    is_pod_sought: bool = False  # though the trial is over, no pod of it was seen
    has_no_pod: bool = False  # the API server says so, after the trial's end
    is_announced: bool = False
    start_t: int | None = None  # of `trial_started`, by the pod's clock
    value: float | None = None
    state: EndState | None = None  # how it ended: by its own word, else by ours

    def take_thing(self, thing: Object, is_deleted: bool, t: int) -> None:
        """Take in the Trial object as it was seen at `t`."""
        self.thing, self.is_deleted = thing, is_deleted
        if self.over_ns is None and (is_deleted or terminal(thing) is not None):
            self.over_ns = t

    def take_pod(self, kind: str, pod: Object, t: int) -> None:
        FollowedPod.take_pod(self, kind, pod, t)
        if self.unscheduled_ns is None and is_unschedulable(pod):
            self.unscheduled_ns = t

    def take_no_pod(self) -> None:
        self.has_no_pod = True

    @property
    def had_to_wait(self) -> bool:
        """Whether the cluster had no room for its pod for a noticeable time."""
        if self.unscheduled_ns is None or self.running_ns is None:
            return False
        return self.running_ns - self.unscheduled_ns > _NOTICEABLE_NS

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
        if self.state != "completed" or self.is_deleted or has(self.thing, "Succeeded"):
            return None
        died = died_collector(self.pod or {})
        if died is not None:
            return "collector_died", died
        if has(self.thing, "MetricsUnavailable"):
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

    def outcome(self, planned_epochs: int) -> Outcome:
        """Return what the results are checked against; complete is what the records call so."""
        is_complete = self.state == "completed" or (self.epochs >= planned_epochs and self.state != "failed")
        return Outcome(
            trial_id=self.trial_id,
            framework_id=self.name,
            configuration=self.configuration,
            is_complete=is_complete,
            value=self.value,
        )
