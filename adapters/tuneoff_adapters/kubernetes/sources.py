"""What the cluster tells: watches and logs, one thread each, all into one queue. Nothing is decided here."""

from __future__ import annotations

import functools
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from tuneoff.base import clock
from tuneoff_adapters.kubernetes.api_errors import ApiError, Missing, Unreachable
from tuneoff_adapters.kubernetes.connection import Connection
from tuneoff_adapters.kubernetes.diagnosis import about, moment_of, trial_of
from tuneoff_adapters.kubernetes.layout import CONTAINER
from tuneoff_adapters.kubernetes.plan import PodPlan
from tuneoff_adapters.kubernetes.resources import EVENTS, PODS, SUGGESTIONS, ApiResource, Object, belongs_to, is_named_after
from tuneoff_adapters.kubernetes.stream import LogStream, Watch

if TYPE_CHECKING:
    from tuneoff_adapters.kubernetes.pod_follower import PodFollower

POLL_SECONDS = 5.0
SEEK_SECONDS = 1.0  # between two questions for a pod that the watch has not told of
_WARNINGS = [("fieldSelector", "type=Warning")]  # what Kubernetes selects events by besides needs whole names
_T = TypeVar("_T")
_WAITING = 10_000  # items; a thread whose pod prints faster than this is read has to wait


class Sources:
    """Daemon threads that read what there is of one experiment from the cluster, until `close`."""

    def __init__(self, connection: Connection, plan: PodPlan, follower: PodFollower[Any]) -> None:
        """`follower`: whose methods take in what is told, each when `get` gives it to be called."""
        self._connection, self._namespace, self._follower = connection, plan.namespace, follower
        self._experiment = plan.config_map  # with which all names begin
        self._labels = plan.labels  # of all: Katib gives them to what it makes of an Experiment
        self._once = connection.once()
        self._queue: queue.Queue[Callable[[], None]] = queue.Queue(_WAITING)
        self._closed = threading.Event()
        self._awake = threading.Event()
        self._open: set[Watch | LogStream] = set()

    def get(self, seconds: float) -> Callable[[], None] | None:
        """Return what takes in the next piece of news, or None if there is none for so long."""
        try:
            return self._queue.get(timeout=seconds) if seconds > 0 else self._queue.get_nowait()
        except queue.Empty:
            return None

    def watch(self, resource: ApiResource) -> None:
        """Begin to follow the experiment's objects of a resource; others may be in the namespace too."""
        stream = self._connection.watch(resource, self._namespace, self._labels)
        self._open.add(stream)

        def follow() -> None:
            for kind, obj in stream:
                if belongs_to(obj, self._experiment):
                    self._tell(self._follower.take_seen, resource, kind, obj, clock.monotonic_ns())

        self._start(follow, f"watch-{resource.plural}")

    def follow_log(self, trial: str, pod: str, is_over: Callable[[], bool]) -> None:
        """Begin to follow the log of a pod's training container; `is_over`: it is known to have ended."""
        stream = self._connection.follow_log(self._namespace, pod, CONTAINER, is_over)
        self._open.add(stream)

        def follow() -> None:
            problem = None
            try:
                for line in stream:
                    self._tell(self._follower.take_line, trial, line, clock.monotonic_ns())
            except Missing:
                pass  # the pod is gone: what was read is all there is
            except (ApiError, Unreachable) as error:  # of this pod alone: a server that is away breaks the watches
                problem = str(error)
            self._open.discard(stream)
            self._tell(self._follower.take_log_end, trial, stream.is_complete, stream.was_rotated, problem)

        self._start(follow, f"log-{pod}")

    def poll(self, with_suggestion: bool = True) -> None:
        """Begin to ask for the suggestion and the warnings every few seconds, and whenever `wake` is called."""

        def ask() -> None:
            while not self._closed.is_set():
                if with_suggestion:
                    suggestion = self._polled(lambda way: way.find(SUGGESTIONS, self._experiment, self._namespace))
                    self._tell(self._follower.take_poll, suggestion)
                events = self._polled(lambda way: way.read(EVENTS.path(self._namespace), _WARNINGS)).get("items") or []
                warnings = [event for event in events if event.get("type") == "Warning"]
                warnings = [event for event in warnings if is_named_after(str(about(event).get("name") or ""), self._experiment)]
                self._tell(self._follower.take_poll, None, sorted(warnings, key=moment_of))
                self._awake.wait(POLL_SECONDS)
                self._awake.clear()

        self._start(ask, "poll")

    def wake(self) -> None:
        """Poll at once."""
        self._awake.set()

    def recount(self, trial: str, pod: str) -> None:
        """Read a pod's whole log again, to tell a silent trial from a silent way to it."""

        def count() -> None:
            lines = None
            try:
                lines = self._connection.read_log(self._namespace, pod, CONTAINER).count(b"\n")
            except Missing:
                return  # its end is on its way
            except (ApiError, Unreachable):  # of this pod alone, as above
                pass
            self._tell(self._follower.take_recount, trial, lines)

        self._start(count, f"recount-{pod}")

    def seek_pod(self, trial: str, is_known: Callable[[], bool], take_none: Callable[[], None]) -> None:
        """Tell once a trial that is over has no pod; one that it has is left to the watch, after which `is_known`."""

        def seek() -> None:
            while not is_known():
                pods = self._connection.items(PODS, self._namespace, self._labels)
                if not any(trial_of(pod) == trial for pod in pods):
                    self._tell(take_none)
                    return
                if self._closed.wait(SEEK_SECONDS):
                    return

        self._start(seek, f"seek-{trial}")

    def delete(self, resource: ApiResource, name: str) -> None:
        """Delete an object without waiting for the answer."""

        def delete() -> None:
            try:
                self._connection.delete(resource, name, self._namespace)
            except ApiError as error:
                self._tell(self._follower.take_refusal, resource, name, str(error))

        self._start(delete, f"delete-{name}")

    def patch(self, resource: ApiResource, name: str, change: Object, take: Callable[[str | None], None]) -> None:
        """Change an object without waiting for the answer; `take` gets why the server refused it, or None."""

        def patch() -> None:
            problem = None
            try:
                self._connection.patch(resource, name, change, self._namespace)
            except ApiError as error:
                problem = str(error)
            self._tell(take, problem)

        self._start(patch, f"patch-{name}")

    def close(self) -> None:
        """End all threads; what they still read is dropped."""
        self._closed.set()
        self._awake.set()
        for stream in self._open.copy():
            stream.close()

    def _polled(self, ask: Callable[[Connection], _T]) -> _T:
        """Ask once, and if the server fails to answer say so, and ask until it does or the limits are over."""
        try:
            return ask(self._once)
        except (Unreachable, ApiError):
            self._tell(self._follower.take_absence)
            return ask(self._connection)

    def _tell(self, take: Callable[..., None], *news: Any) -> None:
        self._queue.put(functools.partial(take, *news))

    def _start(self, follow: Callable[[], None], name: str) -> None:
        def run() -> None:
            try:
                follow()
            except Exception as error:  # a thread's fault must end the run, not be printed and forgotten
                if not self._closed.is_set():
                    self._tell(self._follower.fail, error)

        threading.Thread(target=run, name=name, daemon=True).start()
