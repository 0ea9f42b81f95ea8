"""A stream of changes to objects, for controllers and for watches over HTTP."""

from __future__ import annotations

import queue
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from katib_emulation.kinds import Kind
from katib_emulation.objects import Object, copied

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one object. Objects in it are shared by all subscribers: copy before changing."""

    type: ChangeType
    kind: Kind
    object: Object
    previous: Object | None  # None: the object is new
    version: int


class Subscription:
    """Delivers every change of the asked kinds in order, from the moment at which it was made, until it is closed."""

    def __init__(self, kinds: frozenset[Kind], forget: Callable[[Subscription], None]) -> None:
        self.kinds = kinds
        self._forget = forget
        self._changes: queue.SimpleQueue[Change | None] = queue.SimpleQueue()
        self._closed = False

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called, here or by the end of the store."""
        return self._closed

    def deliver(self, change: Change) -> None:
        """Hand over a change (called by the table, under its lock)."""
        self._changes.put(change)

    def next(self, timeout: float | None = None) -> Change | None:
        """Return the next change; None after `timeout` seconds without one, and at once when closed."""
        if self._closed:
            return None
        try:
            return self._changes.get(timeout=timeout)
        except queue.Empty:
            return None

    def get(self, timeout: float | None = None) -> tuple[ChangeType, Kind, Object] | None:
        """Return (type, kind, a copy of the object), or None as `next` does."""
        change = self.next(timeout)
        return None if change is None else (change.type, change.kind, copied(change.object))

    def close(self) -> None:
        """End the stream: a waiting `get` returns None. May be called twice and from any thread."""
        if not self._closed:
            self._closed = True
            self._forget(self)
            self._changes.put(None)
