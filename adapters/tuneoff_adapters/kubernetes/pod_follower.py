"""What all who follow pods have in common: one thread takes in the news, and acts on limits, silence and what does not go on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from tuneoff.base import clock
from tuneoff.base.clock import NANOSECONDS
from tuneoff.errors import InfrastructureError, StepError
from tuneoff.record.run_context import RunContext
from tuneoff_adapters.kubernetes.connection import Connection
from tuneoff_adapters.kubernetes.diagnosis import PodObstacle
from tuneoff_adapters.kubernetes.endings import PodEnding
from tuneoff_adapters.kubernetes.followed_pod import FollowedPod
from tuneoff_adapters.kubernetes.layout import CONTAINER
from tuneoff_adapters.kubernetes.plan import PodPlan
from tuneoff_adapters.kubernetes.resources import PODS, ApiResource, Object, image_id_of
from tuneoff_adapters.kubernetes.sources import Sources

LOOK_SECONDS = 0.25  # between two looks at what only time brings: limits, ends
FIND_NS = clock.NANOSECONDS  # between two searches for a reason why nothing goes on
BACK_NS = 5 * clock.NANOSECONDS  # after the server was away: what happened meanwhile has come through by then
_Pod = TypeVar("_Pod", bound=FollowedPod)


class Patience:
    """Remembers since when each object has been in trouble without a break, whatever its reason: reasons take turns."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._since: dict[str, int] = {}

    def overdue(self, obstacles: Iterable[PodObstacle], now_ns: int) -> PodObstacle | None:
        """Return the first obstacle that is final or has lasted too long at `now_ns` (monotonic), or None."""
        seen = list(obstacles)
        self._since = {obstacle.subject: self._since.get(obstacle.subject, now_ns) for obstacle in seen}
        limit = self.seconds * NANOSECONDS
        return next((obstacle for obstacle in seen if obstacle.is_final or now_ns - self._since[obstacle.subject] >= limit), None)

    def forget(self) -> None:
        """Begin anew: what was seen is not what is, because the server was away."""
        self._since.clear()


class PodFollower(ABC, Generic[_Pod]):
    """Whatever is called `take_...` takes in what `Sources` tell; all is called by one thread, the one that decides."""

    def __init__(self, context: RunContext, plan: PodPlan, connection: Connection, pending_seconds: float) -> None:
        self._context, self._timeouts = context, context.spec.experiment.timeouts
        self._sources = Sources(connection, plan, self)
        self._patience, self._pending_seconds = Patience(pending_seconds), pending_seconds
        self.checkpoint_problems: dict[str, str] = {}  # why a trial's checkpoint cannot be had, by its id
        self._images: set[str] = set()
        self._suggestion: Object | None = None
        self._warnings: Sequence[Object] = ()
        self._is_away = False  # the API server fails to answer: nothing known is taken for true
        self._back_ns: int | None = None  # since when it answers again
        self._looked_ns = self._searched_ns = 0

    @abstractmethod
    def take_seen(self, resource: ApiResource, kind: str, obj: Object, t: int) -> None:
        """An object of a watch was ADDED, MODIFIED or DELETED; `t`: when that arrived (monotonic)."""

    @abstractmethod
    def _take_line(self, pod: _Pod, line: bytes, t: int) -> None:
        """A pod has printed a line (without its end)."""

    @abstractmethod
    def _find(self, name: str) -> _Pod | None:
        """Return the followed pod of a Job, if it still is."""

    @abstractmethod
    def _pods(self) -> Iterable[_Pod]:
        """Return all that are followed."""

    @abstractmethod
    def _is_limited(self, pod: _Pod) -> bool:
        """Tell whether its trial goes on, as far as is known."""

    @abstractmethod
    def _note_kill(self, pod: _Pod, ending: PodEnding) -> None:
        """Write that its trial is about to be killed for a limit."""

    @abstractmethod
    def _obstacles(self) -> Iterable[PodObstacle]:
        """Return every reason that is seen why something does not go on."""

    @abstractmethod
    def fail(self, error: Exception) -> None:
        """End with an error."""

    def image_digests(self) -> list[str]:
        """Return what the pods ran; more than one where a tag was moved meanwhile."""
        return sorted(self._images)

    def take_line(self, name: str, line: bytes, t: int) -> None:
        pod = self._find(name)
        if pod is not None:
            pod.lines += 1
            pod.sign_ns = t
            self._take_line(pod, line, t)

    def take_log_end(self, name: str, is_complete: bool, was_rotated: bool, problem: str | None = None) -> None:
        """No further line of a log comes; `is_complete`: it was read to its end; `problem`: why the rest cannot be had."""
        pod = self._find(name)
        if pod is None:
            return
        pod.was_log_read, pod.is_log_whole = True, is_complete and not was_rotated
        if problem is not None:
            text = f"the log of pod {pod.pod_name} cannot be read, so events of its trial are missing: {problem}"
            self._context.flag("pod_log_unreadable", text)
        if was_rotated:
            self._context.flag("pod_log_rotated", f"the log of pod {pod.pod_name} was cut by its node: lines may be missing")

    def take_recount(self, name: str, lines: int | None) -> None:
        """A pod's log has so many whole lines (None: nobody can tell): that seemed silent, and was unless some are on the way."""
        pod = self._find(name)
        if pod is None:
            return
        pod.is_recounting = False
        now = clock.monotonic_ns()
        if lines is None:
            pod.asked_ns = now
        elif lines > pod.lines:
            pod.sign_ns = now
        elif self._is_limited(pod) and self._is_silent(pod, now):
            self._kill(pod, f"timed out: silent for {self._timeouts.silence_seconds:g} s", now)

    def take_poll(self, suggestion: Object | None = None, warnings: Sequence[Object] | None = None) -> None:
        """What is asked for now and then, a sign of life: the suggestion (None: none yet), or the namespace's warnings."""
        if self._is_away:
            self._is_away, self._back_ns = False, clock.monotonic_ns()
        self._suggestion = suggestion or self._suggestion
        self._warnings = self._warnings if warnings is None else warnings

    def take_absence(self) -> None:
        """The API server failed to answer a poll; it is asked again until the next answer, or the end of its source."""
        self._is_away = True

    def take_refusal(self, resource: ApiResource, name: str, problem: str) -> None:
        """The server refused to delete an object."""
        text = f"{resource.full_name} {name} was to be deleted, which was refused: {problem}"
        self._context.flag("delete_refused", text)

    def _step(self) -> bool:
        """Take in one piece of news, or what the passing of time brings; tell whether there was news."""
        take = self._sources.get(LOOK_SECONDS)
        if take is not None:
            take()
        now = clock.monotonic_ns()
        if take is None or now - self._looked_ns > LOOK_SECONDS * clock.NANOSECONDS:
            self._looked_ns = now
            self._look(now)
        return take is not None

    def _look(self, now: int) -> None:
        """Act on what only time brings."""
        if self._is_away:
            self._patience.forget()
            return
        if self._back_ns is None or now - self._back_ns > BACK_NS:  # else one that has ended meanwhile would be killed
            for pod in self._pods():
                self._limit(pod, now)
        if now - self._searched_ns > FIND_NS:
            self._searched_ns = now
            obstacle = self._patience.overdue(self._obstacles(), now)
            if obstacle is not None:
                self.fail(StepError(obstacle.line) if obstacle.is_final else InfrastructureError(obstacle.line))

    def _limit(self, pod: _Pod, now: int) -> None:
        seconds = self._timeouts.trial_seconds
        if not self._is_limited(pod):
            return
        if pod.started_ns is not None and now - pod.started_ns > seconds * clock.NANOSECONDS:
            self._kill(pod, f"timed out: longer than {seconds:g} s", now)
        elif self._is_silent(pod, now) and not pod.is_recounting:
            pod.is_recounting = True
            self._sources.recount(pod.name, pod.pod_name)

    def _is_silent(self, pod: _Pod, now: int) -> bool:
        limit = self._timeouts.silence_seconds * clock.NANOSECONDS
        return pod.sign_ns is not None and not pod.was_log_read and now - max(pod.sign_ns, pod.asked_ns or 0) > limit

    def _kill(self, pod: _Pod, cause: str, now: int) -> None:
        pod.killed_ns = now
        self._note_kill(pod, PodEnding("failed", cause, "workload", limit="time"))
        self._sources.delete(PODS, pod.pod_name)

    def _open_log(self, pod: _Pod) -> None:
        """Follow the log of a pod that has begun, once, and note its image."""
        image = image_id_of(pod.pod or {}, CONTAINER)
        self._images |= set() if image is None else {image}
        if not pod.is_log_open and (pod.running_ns is not None or pod.training_ended_ns is not None):
            pod.is_log_open = True
            self._sources.follow_log(pod.name, pod.pod_name, lambda: pod.training_ended_ns is not None or pod.gone_ns is not None)
