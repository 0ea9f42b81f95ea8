"""One place of a pool: the pod of a worker, or of the one trial that it would run now, and the events about its end."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from tuneoff.base import clock
from tuneoff.record.events.schema import Epoch, Event, TrialEnded, TrialStarted
from tuneoff.record.run_context import RunContext
from tuneoff.run.trial.faults import announce_kill
from tuneoff_adapters.kubernetes.api_errors import ApiError, Unreachable
from tuneoff_adapters.kubernetes.connection import Connection
from tuneoff_adapters.kubernetes.diagnosis import Finding, View, trial_without_pod, waiting_pod
from tuneoff_adapters.kubernetes.endings import Ending
from tuneoff_adapters.kubernetes.followed_pod import FollowedPod
from tuneoff_adapters.kubernetes.layout import CONTAINER
from tuneoff_adapters.kubernetes.resources import Object
from tuneoff_adapters.kubernetes.status import is_running
from tuneoff_adapters.kubernetes.transport import Input, NoAnswer

BEAT_NS = 30 * clock.NANOSECONDS  # between two signs of life to a worker: whoever is silent for long is cut off on the way


@dataclass(slots=True, kw_only=True)
class Place(FollowedPod):
    """A worker's trials come one after the other: what is known of a trial is of the one that runs."""

    unsent: list[str] = field(default_factory=list)  # lines for its standard input, until that is there
    input: Input | None = None
    beat_ns: int = 0
    is_ready: bool = False
    answers: list[Any] = field(default_factory=list)  # of a trial's own pod, until that has ended
    trial: str | None = None  # that runs
    last_trial: str | None = None
    attempt: int = 1
    was_cut: bool = False  # its input: it ends after its trial
    problem: str | None = None  # why its input cannot be had

    @property
    def ended_ns(self) -> int | None:
        """When its end was seen first."""
        return self.training_ended_ns or self.gone_ns

    @property
    def is_over(self) -> bool:
        return self.ended_ns is not None and (self.was_log_read or not self.is_log_open)

    def take(self, event: Event, t: int) -> None:
        """Take in an event of its log that came at `t`."""
        if isinstance(event, TrialStarted):
            self.trial = self.last_trial = event.trial
            self.attempt, self.epochs, self.started_ns = event.attempt, 0, t
        elif isinstance(event, Epoch):
            self.epochs = event.epoch
        elif isinstance(event, TrialEnded):
            self.trial = None

    def attach(self, way: Connection, namespace: str) -> None:
        """Connect to the input of a worker that runs, unless that was done; what fails may be tried again."""
        if self.input is None and not self.was_cut and self.ended_ns is None and is_running(self.pod or {}, CONTAINER):
            try:
                self.input, self.problem = way.attach(namespace, self.pod_name, CONTAINER), None
            except (Unreachable, ApiError) as error:
                self.problem = str(error)

    def flush(self) -> bool:
        """Write what is due to the input, if that is there, or a sign of life; tell whether it is not cut."""
        now = clock.monotonic_ns()
        if self.input is None or not (self.unsent or now - self.beat_ns > BEAT_NS):
            return True
        try:
            for line in self.unsent or ["\n"]:
                self.input.write(line)
        except NoAnswer:
            self.input.close()
            self.input, self.was_cut = None, True
            return False
        self.unsent.clear()
        self.beat_ns = now
        return True

    def announce(self, context: RunContext, ending: Ending) -> None:
        """Note that its trial ends for a limit, so that it is not tried again."""
        assert self.trial is not None
        why = {"charged": ending.charged, "limit": ending.limit}
        announce_kill(context.run_dir, context.events, self.trial, self.attempt, ending.cause, **why)


def findings(places: Collection[Place], warnings: Sequence[Object]) -> list[Finding]:
    """Return every reason that is seen why a place does not get to work."""
    pods = {place.pod_name: place.pod for place in places if place.pod is not None}
    jobs: dict[str, Object] = {place.name: {"metadata": {"name": place.name}} for place in places}
    view = View(trials=jobs, pods=pods, events=warnings)
    found = [waiting_pod(pod, warnings) for pod in pods.values()]
    found += [trial_without_pod(job, view) for job in jobs.values()]
    found += [
        Finding(subject=f"input of pod {place.pod_name}", reason="NoInput", message=place.problem, way_out="see its log")
        for place in places
        if place.problem is not None
    ]
    return [one for one in found if one is not None]
