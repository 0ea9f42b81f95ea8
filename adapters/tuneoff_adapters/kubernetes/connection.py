"""The one way to the API server: the unmodified clients, with timeouts, repetitions and readable errors around it.

Importing this module imports neither the SDK nor its clients; making a `Connection` does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from tuneoff.errors import StepError
from tuneoff_adapters.kubernetes.api_errors import Conflict, Failing, Missing, Unreachable
from tuneoff_adapters.kubernetes.options import ClusterOptions
from tuneoff_adapters.kubernetes.resources import (
    ACCESS_REVIEWS,
    EXPERIMENTS,
    PODS,
    ApiResource,
    Object,
    labels_of,
    name_of,
    selector,
)
from tuneoff_adapters.kubernetes.stream import LogStream, Watch
from tuneoff_adapters.kubernetes.transport import Input, NoAnswer, Transport, mapped

Propagation = Literal["Background", "Foreground", "Orphan"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Times in seconds."""

    api: float = 60.0  # how long an API server that does not answer is waited for, over all tries of a call
    connect: float | None = None  # the same where no connection can be made; None: as `api`
    call: float = 20.0  # how long one try may take
    pause: float = 0.1  # before the first repetition; each is twice as long as the one before, up to `longest_pause`
    longest_pause: float = 2.0
    watch: float = 30.0  # the server ends a watch after so long, and it is taken up again where it ended
    silence: float = 60.0  # a log without a line for so long is asked for anew: a dead connection looks the same
    settle: float = 2.0  # how long after a log's end the pod's end may come


class Connection:
    """The way to one API server. Any thread may call any method, and no call blocks for longer than its limits.

    Every failure is an ApiError (the server refused: its own message) or Unreachable, in one line. Answers that pass (429, 5xx)
    and connections that cannot be made or are cut are repeated until `limits.api` is over; what stays is Failing or Unreachable,
    both of the infrastructure. `check`, if there is one, is called where there is no answer: it raises what is known to be the
    reason, and nothing is repeated then.

    Raises:
        StepError: the kubeconfig or its context cannot be used.
    """

    def __init__(
        self,
        kubeconfig: Path | None,
        context: str | None = None,
        limits: Limits | None = None,
        check: Callable[[], None] | None = None,
    ) -> None:
        self.limits, self._check = limits or Limits(), check
        self._transport = Transport(kubeconfig, context)
        self._closed = threading.Event()

    @classmethod
    def of(cls, options: ClusterOptions, kubeconfig: Path | None = None, check: Callable[[], None] | None = None) -> Connection:
        """Return a connection for the options; `kubeconfig` and `check` (the emulated server's) go before theirs."""
        limits = Limits(api=options.api_seconds)
        if kubeconfig is not None:
            return cls(kubeconfig, None, limits, check)
        return cls(options.kubeconfig, options.context, limits, check)

    def limited(self, limits: Limits) -> Connection:
        """Return the same connection with other limits; it shares the client and the counter, and need not be closed."""
        other = Connection.__new__(Connection)
        other.__dict__.update(self.__dict__)
        other.limits = limits
        return other

    def once(self) -> Connection:
        """Return the same connection, with one try for each call."""
        limits = self.limits
        return self.limited(replace(limits, api=min(limits.api, limits.call), pause=float("inf")))

    @property
    def host(self) -> str:
        """The server's address, e.g. `https://10.0.0.1:6443`."""
        return self._transport.host

    @property
    def requests(self) -> int:
        """HTTP requests so far, repetitions included."""
        return self._transport.requests

    def create_experiment(self, experiment: Object) -> Object:
        """Create an Experiment by KatibClient.create_experiment, and return it as the server keeps it.

        Raises:
            Conflict: there is another one of this name.
        """
        namespace = str(experiment["metadata"]["namespace"])
        created = self._create(
            EXPERIMENTS, experiment, namespace, lambda seconds: self._transport.create_experiment(experiment, namespace, seconds)
        )
        return created or self.get(EXPERIMENTS, name_of(experiment), namespace)

    def create(self, resource: ApiResource, obj: Object, namespace: str | None = None) -> Object:
        """Create an object, and return it as the server keeps it.

        Raises:
            Conflict: there is another one of this name.
        """
        path = resource.path(namespace)
        created = self._create(resource, obj, namespace, lambda seconds: self._transport.call("POST", path, seconds, body=obj))
        assert created is not None
        return created

    def get(self, resource: ApiResource, name: str, namespace: str | None = None) -> Object:
        """Return an object.

        Raises:
            Missing: there is none.
        """
        return self.read(resource.path(namespace, name))

    def find(self, resource: ApiResource, name: str, namespace: str | None = None) -> Object | None:
        """Return an object, or None where there is none."""
        try:
            return self.get(resource, name, namespace)
        except Missing:
            return None

    def items(self, resource: ApiResource, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> list[Object]:
        """Return all objects with these labels; without a namespace, those of all."""
        return self.listing(resource, namespace, labels)[0]

    def listing(
        self, resource: ApiResource, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> tuple[list[Object], str]:
        """Return all objects with these labels, and the list's resourceVersion."""
        answer = self.read(resource.path(namespace), [("labelSelector", selector(labels))] if labels else [])
        return list(answer.get("items") or []), str(answer.get("metadata", {}).get("resourceVersion", ""))

    def read(self, path: str, query: list[tuple[str, str]] | None = None) -> Object:
        """Return the answer to a GET of a path, e.g. `/version`."""
        return self._patiently(f"GET {path}", lambda seconds: self._transport.call("GET", path, seconds, query or ()))

    def patch(self, resource: ApiResource, name: str, change: Object, namespace: str | None = None) -> Object:
        """Merge a change into an object (JSON merge patch), and return it as the server keeps it.

        Raises:
            ApiError: a rule of the server's refuses it.
        """
        path = resource.path(namespace, name)
        return self._patiently(f"PATCH {path}", lambda seconds: self._transport.call("PATCH", path, seconds, body=change))

    def delete(
        self,
        resource: ApiResource,
        name: str,
        namespace: str | None = None,
        propagation: Propagation = "Background",
    ) -> bool:
        """Ask for an object's deletion; False: there is none. When it is gone, only `find` tells."""
        path = resource.path(namespace, name)
        body: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        try:
            self._patiently(f"DELETE {path}", lambda seconds: self._transport.call("DELETE", path, seconds, body=body))
        except Missing:
            return False
        except Conflict:
            return True  # a namespace that is being deleted already
        return True

    def may(self, verb: str, resource: ApiResource, namespace: str | None = None, subresource: str = "") -> bool:
        """Tell whether this user may do `verb` (a SelfSubjectAccessReview)."""
        attributes = {"verb": verb, "group": resource.group, "resource": resource.plural}
        attributes |= {"namespace": namespace} if namespace and resource.namespaced else {}
        attributes |= {"subresource": subresource} if subresource else {}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        path = ACCESS_REVIEWS.path()
        answer = self._patiently(f"POST {path}", lambda seconds: self._transport.call("POST", path, seconds, body=review))
        return answer.get("status", {}).get("allowed") is True

    def read_log(self, namespace: str, pod: str, container: str) -> bytes:
        """Return a container's log so far.

        Raises:
            Missing: there is no such pod.
        """
        path, query = PODS.path(namespace, pod, "log"), [("container", container)]
        call = self._transport.call
        return self._patiently(f"GET {path}", lambda seconds: bytes(call("GET", path, seconds, query, silence=seconds).read()))

    def watch(self, resource: ApiResource, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> Watch:
        """Follow the objects with these labels."""
        return Watch(self, resource, namespace, labels)

    def follow_log(self, namespace: str, pod: str, container: str, is_over: Callable[[], bool]) -> LogStream:
        """Follow a container's log; `is_over` tells whether the container is known to have ended."""
        return LogStream(self, namespace, pod, container, is_over)

    def attach(self, namespace: str, pod: str, container: str) -> Input:
        """Return the standard input of a running container; the caller closes it."""
        return self._patiently(f"attach to pod {pod}", lambda seconds: self._transport.attach(namespace, pod, container))

    def open_stream(self, path: str, query: list[tuple[str, str]], silence: float) -> Any:
        """Return the answer to a GET, an `HTTPResponse` of urllib3 to be read as it comes, for who closes it.

        `silence`: the most seconds without a byte.
        """
        return self._patiently(f"GET {path}", lambda seconds: self._transport.call("GET", path, seconds, query, silence=silence))

    def wait(self, seconds: float) -> bool:
        """Sleep; return whether the connection was closed meanwhile."""
        return self._closed.wait(seconds)

    def close(self) -> None:
        """Let calls that wait for another try fail; who reads a stream closes that."""
        self._closed.set()

    def _create(
        self, resource: ApiResource, obj: Object, namespace: str | None, send: Callable[[float], Object | None]
    ) -> Object | None:
        """Create; where an earlier try was never answered, what exists and has our labels is ours."""
        tries = 0

        def counted(seconds: float) -> Object | None:
            nonlocal tries
            tries += 1
            return send(seconds)

        name = name_of(obj)
        try:
            return self._patiently(f"POST {resource.path(namespace)} {name}", counted)
        except Conflict:
            existing = self.find(resource, name, namespace) if tries > 1 else None
            if existing is None or not labels_of(obj) or not labels_of(obj).items() <= labels_of(existing).items():
                raise
            return existing

    def _patiently(self, request: str, attempt: Callable[[float], _T]) -> _T:
        """Call `attempt(seconds that it may take)` until it succeeds, is refused for good, or the limits are over."""
        start, pause = time.monotonic(), self.limits.pause
        while True:
            limit = self.limits.api
            try:
                with mapped(request):
                    return attempt(min(self.limits.call, max(start + limit - time.monotonic(), 0.01)))
            except NoAnswer as error:
                if self._check is not None:
                    self._check()
                text = f"the API server at {self.host} cannot be reached ({error}{_waited(start)})"
                problem: StepError = Unreachable(
                    f"{request}: {text}; check that it runs, and the kubeconfig's address",
                    f"no answer from the API server: {error}",
                )
                problem.__cause__ = error
                if error.is_lasting:
                    raise problem from error
                limit = limit if self.limits.connect is None else self.limits.connect
            except Failing as error:
                problem = Failing(request, error.status, error.reason, error.message + _waited(start))
            if time.monotonic() + pause > start + limit or self.wait(pause):
                raise problem
            pause = min(2 * pause, self.limits.longest_pause)


def _waited(start: float) -> str:
    seconds = time.monotonic() - start
    return f", waited {seconds:.0f} s" if seconds >= 1 else ""
