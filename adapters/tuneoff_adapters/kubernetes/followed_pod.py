"""One pod as it is followed, of a trial or of a worker: what it and its log have told of it so far."""

from __future__ import annotations

from dataclasses import dataclass

from tuneoff.record.events.writer import EventWriter
from tuneoff_adapters.kubernetes.clock_skew import PodClock
from tuneoff_adapters.kubernetes.endings import Ending
from tuneoff_adapters.kubernetes.layout import CONTAINER
from tuneoff_adapters.kubernetes.pod_log import PodLog
from tuneoff_adapters.kubernetes.resources import Object, name_of
from tuneoff_adapters.kubernetes.status import exit_of, has_ended, is_running


@dataclass(slots=True, kw_only=True)
class FollowedPod:
    """Times are monotonic nanoseconds of this process, None: not yet."""

    name: str  # of its Job, which is Katib's name of the trial
    log: PodLog
    seen_ns: int  # the first sight of what it is made for
    pod: Object | None = None  # as last seen
    running_ns: int | None = None  # the training container was seen to run
    training_ended_ns: int | None = None
    gone_ns: int | None = None  # the pod has ended or was deleted
    is_log_open: bool = False
    was_log_read: bool = False  # in whole or not: no further line comes
    is_log_whole: bool = False
    lines: int = 0
    sign_ns: int | None = None  # its last sign of life
    is_recounting: bool = False
    asked_ns: int | None = None  # when its log could not be counted, last
    started_ns: int | None = None  # its trial, no earlier than it was
    epochs: int = 0
    killed_ns: int | None = None
    was_exit_written: bool = False

    @property
    def pod_name(self) -> str:
        return name_of(self.pod or {})

    def take_pod(self, kind: str, pod: Object, t: int) -> None:
        """Take in the pod as it was seen at `t`."""
        self.pod = pod
        if self.running_ns is None and is_running(pod, CONTAINER):
            self.running_ns = self.sign_ns = t
        if self.training_ended_ns is None and (exit_of(pod, CONTAINER) is not None or kind == "DELETED"):
            self.training_ended_ns = t
        if self.gone_ns is None and (has_ended(pod) or kind == "DELETED"):
            self.gone_ns = t

    def write_end(self, events: EventWriter, trial: str, ending: Ending, t: int, attempt: int = 1) -> None:
        """Write how its trial ended, which cannot say so itself."""
        before_ns = max(self.sign_ns or self.seen_ns, self.killed_ns or 0)
        extra = {"cause": ending.cause, "charged": ending.charged} if ending.cause is not None else {}
        events.write(
            "trial_ended",
            t=t,
            trial=trial,
            attempt=attempt,
            state=ending.state,
            epochs=self.epochs,
            by="coordinator",
            uncertainty_ns=max(0, t - before_ns),
            **extra,
        )

    def write_exit(self, events: EventWriter, pod_clock: PodClock) -> None:
        """Write when its process was seen to be gone; nothing where that was seen late, for then it is not known."""
        if self.log.process is None or self.training_ended_ns is None or self.was_exit_written:
            return
        self.was_exit_written = True
        ended = exit_of(self.pod or {}, CONTAINER)
        if ended is None or not pod_clock.is_late(ended.finished_at, self.training_ended_ns):
            events.write("process_exited", t=self.training_ended_ns, process=self.log.process.name)
