"""A connection whose watches and logs say what a test tells them to, at once and in the test's order."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tuneoff_adapters.kubernetes.api_errors import Unreachable
from tuneoff_adapters.kubernetes.connection import Limits
from tuneoff_adapters.kubernetes.resources import EXPERIMENTS, PODS, TRIALS, ApiResource, Object, name_of


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
        self.patched: list[Object] = []  # the changed parts of a specification
        self.patch_refusal: Exception | None = None
        self.may_patch = threading.Event()
        self.may_patch.set()
        self.limits = Limits()
        self.watched: dict[str, Mapping[str, str]] = {}  # the labels by which a resource is watched
        self.refusal: Exception | None = None  # of logs that are read and of deletions
        self.is_there = threading.Event()  # as far as polls are concerned
        self.is_there.set()
        self.pods: dict[str, Object] = {}  # that are there, told or not
        self.listings = 0  # of pods

    # What the test tells

    def show(self, resource: ApiResource, thing: Object, change: str = "MODIFIED") -> None:
        if resource is PODS:
            self.pods[name_of(thing)] = thing
        self.feeds[resource.plural].put((change, thing))

    def log(self, pod: str, *lines: bytes, is_whole: bool = True) -> None:
        """Write lines; `is_whole` ends the log."""
        feed = self.logs.setdefault(pod, Feed())
        for line in lines:
            feed.put(line)
        if is_whole:
            feed.put(None)

    # What the adapter asks

    def once(self) -> Hasty:
        return Hasty(self)

    def watch(self, resource: ApiResource, namespace: str, labels: Mapping[str, str]) -> Feed:
        self.watched[resource.plural] = labels
        return self.feeds[resource.plural]

    def follow_log(self, namespace: str, pod: str, container: str, is_over: Callable[[], bool]) -> Feed:
        return self.logs.setdefault(pod, Feed())

    def read_log(self, namespace: str, pod: str, container: str) -> bytes:
        if self.refusal is not None:
            raise self.refusal
        return self.log_text.get(pod, b"")

    def find(self, resource: ApiResource, name: str, namespace: str) -> Object | None:
        self.is_there.wait(60)
        return self.suggestion

    def read(self, path: str, query: list[tuple[str, str]]) -> Object:
        """Only events are asked for."""
        return {"items": self.events}

    def items(self, resource: ApiResource, namespace: str, labels: Mapping[str, str]) -> list[Object]:
        """Only pods are asked for."""
        self.listings += 1
        return list(self.pods.values())

    def patch(self, resource: ApiResource, name: str, change: Object, namespace: str) -> Object:
        self.may_patch.wait(60)
        self.patched.append(change["spec"])
        if self.patch_refusal is not None:
            raise self.patch_refusal
        return {}

    def delete(self, resource: ApiResource, name: str, namespace: str) -> bool:
        """Delete at once: a pod's log ends, a deleted experiment takes its pods along."""
        self.deleted.append((resource.plural, name))
        if self.refusal is not None:
            raise self.refusal
        pods = [pod for pod in self.pods if resource is EXPERIMENTS or pod == name]
        for pod in pods:
            self.show(PODS, self.pods.pop(pod), "DELETED")
            self.logs.setdefault(pod, Feed()).put(None)
        return True


class Hasty:
    """The same cluster, which says that it is away instead of waiting until it is there."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self.read = cluster.read

    def find(self, resource: ApiResource, name: str, namespace: str) -> Object | None:
        if not self._cluster.is_there.is_set():
            raise Unreachable("the API server cannot be reached")
        return self._cluster.find(resource, name, namespace)
