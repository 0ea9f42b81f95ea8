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
from tuneoff_adapters.kubernetes.pod_log import PodLog
from tuneoff_adapters.kubernetes.resources import Object
from tuneoff_adapters.kubernetes.status import terminal

_NOTICEABLE_NS = NANOSECONDS


@dataclass(slots=True, kw_only=True)
class FollowedTrial:
    """Times are monotonic nanoseconds of this process, None: not yet."""

    name: str  # Katib's
    trial_id: str
    configuration: Mapping[str, Any]
    seen_ns: int  # the first sight of the Trial object
    log: PodLog
    thing: Object  # the Trial, as last seen
    is_deleted: bool = False  # the Trial object
    over_ns: int | None = None  # Katib ended it, or it was deleted
    pod: str = ""  # its name
    pod_thing: Object | None = None  # as last seen
    unscheduled_ns: int | None = None  # first seen without a node that would take it
    is_pod_sought: bool = False  # though the trial is over, no pod of it was seen
    has_no_pod: bool = False  # the API server says so, after the trial's end
    is_log_open: bool = False
    was_log_read: bool = False  # in whole or not: no further line comes
    is_log_whole: bool = False
    lines: int = 0
    is_announced: bool = False
    start_t: int | None = None  # of `trial_started`, by the pod's clock
    started_ns: int | None = None  # the same by ours, no earlier than it was
    running_ns: int | None = None  # the training container was seen to run
    last_sign_ns: int | None = None
    training_ended_ns: int | None = None
    gone_ns: int | None = None  # the pod has ended or was deleted
    killed_ns: int | None = None
    kill_cause: str | None = None
    is_recounting: bool = False
    asked_ns: int | None = None  # when its log could not be counted, last
    epochs: int = 0
    value: float | None = None
    state: EndState | None = None  # how it ended: by its own word, else by ours
    was_exit_written: bool = False

    def take_thing(self, thing: Object, is_deleted: bool, t: int) -> None:
        """Take in the Trial object as it was seen at `t`."""
        self.thing, self.is_deleted = thing, is_deleted
        if self.over_ns is None and (is_deleted or terminal(thing) is not None):
            self.over_ns = t

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
        return self.gone_ns is not None if self.pod else self.has_no_pod

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
        is_complete = self.epochs >= planned_epochs and self.state != "failed"
        return Outcome(
            trial_id=self.trial_id,
            framework_id=self.name,
            configuration=self.configuration,
            is_complete=is_complete,
            value=self.value,
        )
