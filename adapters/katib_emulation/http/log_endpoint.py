"""The log endpoint of pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from katib_emulation.http.answers import Answer, Stream
from katib_emulation.http.paths import Target
from katib_emulation.http.queries import count, is_true
from katib_emulation.kinds import PODS
from katib_emulation.storage.store import Store


class PodLogs(Protocol):
    """Who has the containers' output: the node. Both refuse (400) a container that is none of the pod's or waits to start."""

    def read_log(self, namespace: str, pod: str, container: str | None) -> bytes:
        """Return what the container has written so far; empty for a pod without a node."""
        ...

    def follow_log(self, namespace: str, pod: str, container: str | None) -> Iterator[bytes]:
        """Return the output from its beginning until the container has ended; empty pieces while nothing is written."""
        ...


def answer_log(store: Store, logs: PodLogs, target: Target, query: Mapping[str, str]) -> Answer | Stream:
    """Answer `GET .../pods/NAME/log[?container=C][&follow=true][&tailLines=N][&limitBytes=N]`.

    Raises:
        ApiError: 404; 400, see PodLogs.
    """
    name, namespace = target.name or "", target.namespace or ""
    store.get(PODS, name, namespace)
    container = query.get("container") or None
    if is_true(query.get("follow")):
        return Stream(logs.follow_log(namespace, name, container), "text/plain")
    lines, limit = count(query, "tailLines"), count(query, "limitBytes")
    content = logs.read_log(namespace, name, container)
    if lines is not None:
        content = b"".join(content.splitlines(keepends=True)[-lines:]) if lines else b""
    return Answer(200, content if limit is None else content[:limit])
