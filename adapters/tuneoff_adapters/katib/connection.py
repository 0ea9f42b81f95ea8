"""The one way to the API server: the unmodified KatibClient with timeouts, retries and readable errors around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tuneoff_adapters.katib.options import KatibOptions
from tuneoff_adapters.katib.resources import Object, Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Times in seconds."""

    api: float = 60.0  # how long an API server that does not answer is waited for, over all tries of a call
    call: float = 20.0  # how long one try may take
    pause: float = 0.1  # before the first repetition; doubles up to `longest_pause`
    longest_pause: float = 2.0
    watch: float = 30.0  # the server ends a watch after this long, and it is taken up again where it ended


class Connection:
    """The way to one API server. Any thread may call any method. Every failure is an ApiError or Unreachable, in one line."""

    def __init__(self, kubeconfig: Path | None, context: str | None = None, limits: Limits | None = None) -> None: ...

    @classmethod
    def of(cls, options: KatibOptions, kubeconfig: Path | None = None) -> Connection:
        """From the options; `kubeconfig` (of the emulated server) goes before theirs."""
        raise NotImplementedError

    host: str
    requests: int  # HTTP requests so far, repetitions included

    def create_experiment(self, experiment: Object) -> Object:
        """KatibClient.create_experiment with a plain dict; returns the object as stored."""
        raise NotImplementedError

    def create(self, resource: Resource, obj: Object, namespace: str | None = None) -> Object:
        raise NotImplementedError

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        """Raises Missing."""
        raise NotImplementedError

    def find(self, resource: Resource, name: str, namespace: str | None = None) -> Object | None:
        raise NotImplementedError

    def items(self, resource: Resource, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> list[Object]:
        raise NotImplementedError

    def patch(self, resource: Resource, name: str, change: Object, namespace: str | None = None) -> Object:
        """Merge patch."""
        raise NotImplementedError

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        propagation: Literal["Background", "Foreground", "Orphan"] = "Background",
        grace_seconds: int | None = None,
    ) -> bool:
        """False: there was none. True says nothing about when it will be gone."""
        raise NotImplementedError

    def watch(self, resource: Resource, namespace: str, labels: Mapping[str, str] | None = None) -> Watch:
        raise NotImplementedError

    def read_log(self, namespace: str, pod: str, container: str) -> bytes:
        raise NotImplementedError

    def follow_log(self, namespace: str, pod: str, container: str, is_over: Callable[[], bool]) -> LogStream:
        raise NotImplementedError

    def post_review(self, verb: str, resource: Resource, namespace: str | None, subresource: str = "") -> bool:
        raise NotImplementedError

    def close(self) -> None:
        """Close what is open; threads in watches and logs end."""


class Watch:
    """`for kind, obj in watch:` with kind ADDED, MODIFIED or DELETED, for ever, until `close()` from any thread.

    Lists first, so that everything there is comes as ADDED; after a disconnect or 410 it lists again and yields the difference.
    Raises Unreachable when the server is away for `limits.api` seconds, ApiError when it refuses.
    """

    def __iter__(self) -> Any: ...

    def close(self) -> None: ...


class LogStream:
    """`for line in stream:` gives each line (bytes without newline) of a container's log once, following it across disconnects.

    `is_over` tells whether the container is known to have terminated (from the pods' watch): then one last look, and the end.
    `is_complete` tells afterwards whether the whole log was read (False: the pod was deleted, or `close()` was called).
    """

    is_complete: bool
    was_rotated: bool

    def __iter__(self) -> Any: ...

    def close(self) -> None: ...
