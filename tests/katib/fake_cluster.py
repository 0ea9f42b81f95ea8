"""A connection whose watches and logs say what a test tells them to, at once and in the test's order."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from typing import Any

from tuneoff_adapters.katib.resources import EXPERIMENTS, PODS, TRIALS, Object, Resource, name_of

Change = tuple[str, Object]


class Feed:
    """A watch or a log: what is put comes out, None ends it, and an exception is raised by it."""

    def __init__(self) -> None:
        self._items: queue.Queue[Any] = queue.Queue()
        self.is_complete, self.was_rotated = True, False

    def put(self, item: Any) -> None:
        self._items.put(item)

    def __iter__(self) -> Iterator[Any]:
        while (item := self._items.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item

    def close(self) -> None:
        self._items.put(None)


class FakeCluster:
    """Stands in for a Connection."""

    def __init__(self) -> None:
        self.feeds = {resource.plural: Feed() for resource in (EXPERIMENTS, TRIALS, PODS)}
        self.logs: dict[str, Feed] = {}
        self.log_text: dict[str, bytes] = {}  # the whole log, as `read_log` gives it
        self.suggestion: Object | None = None
        self.events: list[Object] = []
        self.deleted: list[tuple[str, str]] = []
        self._pods: dict[str, Object] = {}

    # What the test tells

    def show(self, resource: Resource, thing: Object, change: str = "MODIFIED") -> None:
        if resource is PODS:
            self._pods[name_of(thing)] = thing
        self.feeds[resource.plural].put((change, thing))

    def log(self, pod: str, *lines: bytes, is_whole: bool = True) -> None:
        """Write lines; `is_whole` ends the log."""
        feed = self.logs.setdefault(pod, Feed())
        for line in lines:
            feed.put(line)
        if is_whole:
            feed.put(None)

    # What the adapter asks

    def watch(self, resource: Resource, namespace: str) -> Feed:
        return self.feeds[resource.plural]

    def follow_log(self, namespace: str, pod: str, container: str, is_over: Callable[[], bool]) -> Feed:
        return self.logs.setdefault(pod, Feed())

    def read_log(self, namespace: str, pod: str, container: str) -> bytes:
        return self.log_text.get(pod, b"")

    def find(self, resource: Resource, name: str, namespace: str) -> Object | None:
        return self.suggestion

    def items(self, resource: Resource, namespace: str) -> list[Object]:
        return self.events

    def delete(self, resource: Resource, name: str, namespace: str) -> bool:
        """Delete at once: a pod's log ends, a deleted experiment takes its pods along."""
        self.deleted.append((resource.plural, name))
        pods = [pod for pod in self._pods if resource is EXPERIMENTS or pod == name]
        for pod in pods:
            self.show(PODS, self._pods.pop(pod), "DELETED")
            self.logs.setdefault(pod, Feed()).put(None)
        return True


def eventually(is_so: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Wait until it is so; False: it never was."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
