"""Follow the objects of one kind as the server changes them, by the client's own `Watch`."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from tuneoff_adapters.kubernetes.api_errors import ApiError
from tuneoff_adapters.kubernetes.resources import Object, Resource, selector
from tuneoff_adapters.kubernetes.stream import Stream
from tuneoff_adapters.kubernetes.transport import NoAnswer

if TYPE_CHECKING:
    from tuneoff_adapters.kubernetes.connection import Connection

Change = Literal["ADDED", "MODIFIED", "DELETED"]
GONE = 410  # the server has forgotten the version that the watch would go on from
SLACK_SECONDS = 10.0  # for the server to end a watch itself


class Watch(Stream):
    """`for change, obj in watch:` gives every change of the objects, for ever, until `close()` in any thread.

    It begins with all objects that there are, as ADDED. After a disconnect, or when the server has forgotten where it was, it
    lists them again and gives what changed meanwhile: objects that vanished come as DELETED, as they were last seen.

    Raises, from the loop:
        Unreachable: the server was away for the connection's `limits.api`.
        ApiError: the server refuses.
    """

    def __init__(
        self, connection: Connection, resource: Resource, namespace: str | None, labels: Mapping[str, str] | None
    ) -> None:
        super().__init__(connection, resource.path(namespace))
        self._resource, self._namespace, self._labels = resource, namespace, labels
        self._known: dict[str, Object] = {}  # by uid
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
        found, version = self._connection.listing(self._resource, self._namespace, self._labels)
        now = {_uid(obj): obj for obj in found}
        gone = [obj for uid, obj in self._known.items() if uid not in now]
        changed = [(uid, obj) for uid, obj in now.items() if _version(obj) != _version(self._known.get(uid, {}))]
        self._version = version or "0"
        for obj in gone:
            del self._known[_uid(obj)]
            yield "DELETED", obj
        for uid, obj in changed:
            change: Change = "MODIFIED" if uid in self._known else "ADDED"
            self._known[uid] = obj
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
        except (NoAnswer, ValueError, LookupError, TypeError):  # all but the first: a line that is no event, of a proxy
            pass
        self._version = None
        return False

    def _event(self, change: str, obj: Object) -> Iterator[tuple[Change, Object]]:
        self._version = _version(obj) or self._version
        self._has_news |= change != "BOOKMARK"
        uid = _uid(obj)
        if change == "DELETED":
            self._known.pop(uid, None)
            yield "DELETED", obj
        elif change in ("ADDED", "MODIFIED"):
            is_new = uid not in self._known
            self._known[uid] = obj
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
