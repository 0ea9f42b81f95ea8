"""Watches and logs: streams that any thread may end while another one reads them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from tuneoff_adapters.kubernetes.api_errors import ApiError, Missing
from tuneoff_adapters.kubernetes.resources import PODS, ApiResource, Object, selector
from tuneoff_adapters.kubernetes.transport import NoAnswer, mapped

if TYPE_CHECKING:
    from tuneoff_adapters.kubernetes.connection import Connection

Change = Literal["ADDED", "MODIFIED", "DELETED"]
GONE = 410  # the server has forgotten the version that the watch would go on from
SLACK_SECONDS = 10.0  # for the server to end a watch itself
_CHUNK_BYTES = 2**16
_LOOK_SECONDS = 0.05  # between two looks at `is_over`, which costs no request
_LONGEST_LINE = 2**24  # bytes: of a longer line the last so many are given
_LONGEST_WAIT = 30.0  # before a log is asked for again that ended although its container did not


class Stream:
    """Reads one answer after the other; `close()` ends the one that is read now, and lets no other begin."""

    def __init__(self, connection: Connection, path: str) -> None:
        self._connection, self._path = connection, path
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._response: Any = None

    def close(self) -> None:
        """End the loop, wherever it is."""
        self._closed.set()
        with self._lock:
            self._shut()

    @contextlib.contextmanager
    def _reading(self, response: Any) -> Iterator[None]:
        """Let `close()` reach the answer while it is read; close it afterwards.

        Raises:
            ApiError, NoAnswer: it told of an error, or was cut or silent for too long.
        """
        with self._lock:
            self._response = response
            if self._closed.is_set():
                self._shut()
        try:
            with mapped(f"GET {self._path}"):
                yield
        finally:
            with self._lock:
                self._response = None
            response.close()

    def _shut(self) -> None:
        """Wake the thread that reads."""
        with contextlib.suppress(OSError, ValueError, RuntimeError, AttributeError):  # there is none, or it ended meanwhile
            self._response.shutdown()


class Watch(Stream):
    """`for change, obj in watch:` gives every change of the objects, for ever, until `close()` in any thread.

    It begins with all objects that there are, as ADDED. After a disconnect, or when the server has forgotten where it was, it
    lists them again and gives what changed meanwhile: objects that vanished come as DELETED, as they were last seen.

    Raises, from the loop:
        Unreachable: the server was away for the connection's `limits.api`.
        ApiError: the server refuses.
    """

    def __init__(
        self, connection: Connection, resource: ApiResource, namespace: str | None, labels: Mapping[str, str] | None
    ) -> None:
        super().__init__(connection, resource.path(namespace))
        self._resource, self._namespace, self._labels = resource, namespace, labels
        self._objects: dict[str, Object] = {}  # by uid
        self._has_news = False  # the last request brought a change
        self._version: str | None = None  # where to go on; None: list first

    def __iter__(self) -> Iterator[tuple[Change, Object]]:
        limits = self._connection.limits
        pause = limits.pause
        while not self._closed.is_set():
            if self._version is None:
                yield from self._listed()
            since, self._has_news = time.monotonic(), False
            is_regular = yield from self._watched()
            if (is_regular and self._has_news) or time.monotonic() - since > limits.longest_pause:
                pause = limits.pause
                continue
            if self._closed.wait(pause):
                return
            pause = min(2 * pause, limits.longest_pause)  # it ends at once, again and again

    def _listed(self) -> Iterator[tuple[Change, Object]]:
        objects, version = self._connection.listing(self._resource, self._namespace, self._labels)
        now = {_uid(obj): obj for obj in objects}
        gone = [obj for uid, obj in self._objects.items() if uid not in now]
        changed = [(uid, obj) for uid, obj in now.items() if _version(obj) != _version(self._objects.get(uid, {}))]
        self._version = version or "0"
        for obj in gone:
            del self._objects[_uid(obj)]
            yield "DELETED", obj
        for uid, obj in changed:
            change: Change = "MODIFIED" if uid in self._objects else "ADDED"
            self._objects[uid] = obj
            yield change, obj

    def _watched(self) -> Generator[tuple[Change, Object], None, bool]:
        """Yield from one watch request; return whether it ended regularly. Else the next step is to list."""
        limits = self._connection.limits
        query = [("watch", "true"), ("allowWatchBookmarks", "true"), ("resourceVersion", self._version or "0")]
        query.append(("timeoutSeconds", str(max(1, round(limits.watch)))))
        if self._labels:
            query.append(("labelSelector", selector(self._labels)))
        try:
            response = self._connection.open_stream(self._path, query, limits.watch + SLACK_SECONDS)
        except ApiError as error:
            if error.status != GONE:
                raise
            self._version = None
            return False
        try:
            with self._reading(response):
                for event in _events(response):
                    if self._closed.is_set():
                        break
                    yield from self._event(str(event["type"]), event["object"])
            return True
        except ApiError as error:  # told by the answer, or by its last event
            if error.status != GONE and error.status < 500:
                raise
        except (NoAnswer, ValueError, LookupError, TypeError):  # all but the first: a line that is not an event, of a proxy
            pass
        self._version = None
        return False

    def _event(self, change: str, obj: Object) -> Iterator[tuple[Change, Object]]:
        self._version = _version(obj) or self._version
        self._has_news |= change != "BOOKMARK"
        uid = _uid(obj)
        if change == "DELETED":
            self._objects.pop(uid, None)
            yield "DELETED", obj
        elif change in ("ADDED", "MODIFIED"):
            is_new = uid not in self._objects
            self._objects[uid] = obj
            yield "ADDED" if is_new else "MODIFIED", obj


def _events(response: Any) -> Iterator[Any]:
    """Return the events of one answer, which has a time limit of its own: so the client asks for no other one after it."""
    from kubernetes.watch import Watch as ClientWatch

    def answer(**options: Any) -> Any:
        """Return the answer, whatever the client's Watch would ask for."""
        return response

    events: Iterator[Any] = ClientWatch().stream(answer, timeout_seconds=1)
    return events


def _uid(obj: Object) -> str:
    metadata = obj.get("metadata", {})
    return str(metadata.get("uid") or f"{metadata.get('namespace')}/{metadata.get('name')}")


def _version(obj: Object) -> str:
    return str(obj.get("metadata", {}).get("resourceVersion", ""))


class LogStream(Stream):
    """`for line in stream:` gives each line of the log (bytes, without its end) once, as it is written.

    The API has no offset into a log. So after a disconnect it is read from its beginning, and as many lines as were given are
    skipped; that is wrong only where the node has rotated the log away meanwhile (its first line is another one), which
    `was_rotated` tells: then everything that is left is given.

    A log ends when `is_over()` says that the container is known to have ended, and it was read to its end after that.
    `is_complete` tells so afterwards; False: the pod is gone, or `close()` was called. One that the server refuses is asked for
    again every 30 s while its container runs: a node that was lost may come back.

    Raises, from the loop:
        Unreachable: the server was away for the connection's `limits.api`.
        ApiError: the server refuses, and the container is known to have ended.
    """

    def __init__(self, connection: Connection, namespace: str, pod: str, container: str, is_over: Callable[[], bool]) -> None:
        super().__init__(connection, PODS.path(namespace, pod, "log"))
        self._container, self._is_over = container, is_over
        self.is_complete = False
        self.was_rotated = False
        self._delivered = 0  # lines
        self._first: bytes | None = None
        self._rest: list[bytes] = []  # after the last line's end

    def __iter__(self) -> Iterator[bytes]:
        settle = self._connection.limits.settle
        wait = settle
        while not self._closed.is_set():
            was_over, before = self._is_over(), self._delivered
            try:
                is_whole = yield from self._read(is_following=not was_over)
            except Missing:
                return
            except ApiError:
                if was_over:
                    raise
                self._await_end(_LONGEST_WAIT)
                continue
            if self._closed.is_set():
                return
            if is_whole and was_over:
                self.is_complete = True
                if rest := b"".join(self._rest):
                    yield rest
                return
            wait = settle if self._delivered > before else min(2 * wait, _LONGEST_WAIT)
            self._await_end(wait if is_whole else self._connection.limits.pause)

    def _read(self, is_following: bool) -> Generator[bytes, None, bool]:
        """Yield the lines that were not given yet, of one request; return whether it ended regularly."""
        limits = self._connection.limits
        query = [("container", self._container), *([("follow", "true")] if is_following else [])]
        response = self._connection.open_stream(self._path, query, limits.silence if is_following else limits.call)
        self._rest = []
        number = 0
        try:
            with self._reading(response):
                for chunk in response.stream(_CHUNK_BYTES):
                    first, *lines = chunk.split(b"\n")
                    self._rest.append(first)
                    if len(self._rest) > 2 * _LONGEST_LINE // _CHUNK_BYTES:
                        self._rest = [b"".join(self._rest)[-_LONGEST_LINE:]]
                    if not lines:
                        continue
                    lines.insert(0, b"".join(self._rest))
                    self._rest = [lines.pop()]
                    for line in lines:
                        if number == 0:
                            self._begin(line)
                        number += 1
                        if number > self._delivered:
                            self._delivered = number
                            yield line
            return True
        except NoAnswer:
            return False

    def _begin(self, first: bytes) -> None:
        """Find out by its first line whether this is the log that was read before."""
        if self._first is not None and first != self._first:
            self.was_rotated = True
            self._delivered = 0
        self._first = first

    def _await_end(self, seconds: float) -> None:
        """Wait until the container is known to have ended, but no longer than `seconds`."""
        deadline = time.monotonic() + seconds
        while not self._is_over() and time.monotonic() < deadline and not self._closed.is_set():
            self._closed.wait(_LOOK_SECONDS)
