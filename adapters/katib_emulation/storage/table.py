"""The objects in memory, with their versions, owners, history and subscribers; every change goes through `put` and `drop`.

Stored objects are never changed in place: a reader may hold one without the lock.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from katib_emulation.kinds import KINDS, Kind
from katib_emulation.objects import Key, Object, key_of, owners
from katib_emulation.statuses import gone, internal
from katib_emulation.storage.journal import Journal, JournalError, encode

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

    def close(self) -> None:
        """End the stream: a waiting `get` returns None. May be called twice and from any thread."""
        if not self._closed:
            self._closed = True
            self._forget(self)
            self._changes.put(None)


HISTORY = 1_000
"""Changes kept for watches that start at an older version; each holds a whole object."""

COMPACTION_BYTES = 64 * 2**20
"""The journal is rewritten when it has grown by this."""


class Table:
    """All objects. `lock` guards every access; it may be taken again by the thread that holds it."""

    def __init__(self, journal: Journal, on_failure: Callable[[JournalError], None]) -> None:
        self.lock = threading.RLock()
        self.version = 0
        self._journal = journal
        self._on_failure = on_failure
        self._objects: dict[Kind, dict[Key, Object]] = {kind: {} for kind in KINDS}
        self._keys: dict[str, Key] = {}  # by uid
        self._owned: dict[str, set[Key]] = {}  # by the owner's uid
        self._history: deque[Change] = deque(maxlen=HISTORY)
        self._subscriptions: list[Subscription] = []
        self._closed = False
        self._compact_at = COMPACTION_BYTES
        self._load()
        self._oldest = self.version  # what happened before is not in the history

    def find(self, key: Key) -> Object | None:
        """Return the object itself (not a copy), or None."""
        with self.lock:
            return self._objects[key.kind].get(key)

    def find_uid(self, uid: str) -> Key | None:
        """Return the identity of the object with this uid, or None."""
        with self.lock:
            return self._keys.get(uid)

    def values(self, kind: Kind, namespace: str | None = None) -> list[Object]:
        """Return the objects themselves (not copies), the oldest first, of one namespace or of all."""
        with self.lock:
            return [obj for key, obj in self._objects[kind].items() if namespace in (None, key.namespace)]

    def content(self, namespace: str) -> list[Key]:
        """Return what lies in a namespace."""
        with self.lock:
            return [key for objects in self._objects.values() for key in objects if key.namespace == namespace]

    def owned(self, uid: str) -> list[Key]:
        """Return the objects that name this uid among their owners, oldest first."""
        with self.lock:
            return sorted(self._owned.get(uid, ()), key=lambda key: (key.kind.plural, key.name))

    def put(self, kind: Kind, obj: Object) -> Object:
        """Store `obj` (which must not be changed afterwards) under a new resourceVersion.

        Raises:
            ApiError: 500, it could not be kept.
        """
        with self.lock:
            key = key_of(kind, obj)
            obj["metadata"]["resourceVersion"] = str(self.version + 1)
            self._keep({"version": self.version + 1, "put": kind.resource, "object": obj})
            previous = self._objects[kind].get(key)
            self._place(key, obj, previous)
            self._notify("MODIFIED" if previous else "ADDED", kind, obj, previous)
            return obj

    def drop(self, key: Key) -> Object:
        """Remove an object that exists; return its last state.

        Raises:
            ApiError: 500, the change could not be kept.
        """
        with self.lock:
            self._keep({"version": self.version + 1, "drop": key.kind.resource, "namespace": key.namespace, "name": key.name})
            previous = self._remove(key)
            last = {**previous, "metadata": {**previous["metadata"], "resourceVersion": str(self.version + 1)}}
            self._notify("DELETED", key.kind, last, previous)
            return last

    def subscribe(self, kinds: Iterable[Kind], since: int | None = None, initial: bool = False) -> Subscription:
        """Return a stream of the changes from now on, or after version `since`; `initial` first gives each object as ADDED.

        Raises:
            ApiError: 410, the changes after `since` are no longer kept.
        """
        with self.lock:
            subscription = Subscription(frozenset(kinds), self._forget)
            if initial:
                for kind in subscription.kinds:
                    for obj in self.values(kind):
                        version = int(obj["metadata"]["resourceVersion"])
                        subscription.deliver(Change("ADDED", kind, obj, None, version))
            elif since is not None:
                if not self._oldest <= since <= self.version:
                    raise gone(since, self._oldest)
                for change in self._history:
                    if change.version > since and change.kind in subscription.kinds:
                        subscription.deliver(change)
            self._subscriptions.append(subscription)
            return subscription

    def close(self) -> None:
        """End all subscriptions and let go of the journal; later changes are refused."""
        with self.lock:
            self._closed = True
            for subscription in list(self._subscriptions):
                subscription.close()
            self._journal.close()

    def _forget(self, subscription: Subscription) -> None:
        with self.lock:
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)

    def _notify(self, type_: ChangeType, kind: Kind, obj: Object, previous: Object | None) -> None:
        self.version += 1
        change = Change(type_, kind, obj, previous, self.version)
        if len(self._history) == HISTORY:
            self._oldest = self._history[0].version
        self._history.append(change)
        for subscription in self._subscriptions:
            if kind in subscription.kinds:
                subscription.deliver(change)

    def _place(self, key: Key, obj: Object, previous: Object | None) -> None:
        self._objects[key.kind][key] = obj
        self._keys[obj["metadata"]["uid"]] = key
        for owner in owners(previous or {"metadata": {}}):
            self._owned.get(owner["uid"], set()).discard(key)
        for owner in owners(obj):
            self._owned.setdefault(owner["uid"], set()).add(key)

    def _remove(self, key: Key) -> Object:
        obj = self._objects[key.kind].pop(key)
        self._keys.pop(obj["metadata"]["uid"], None)
        for owner in owners(obj):
            self._owned.get(owner["uid"], set()).discard(key)
        return obj

    def _keep(self, entry: dict[str, Any]) -> None:
        if self._closed:
            raise internal("the server is ending")
        line = encode(entry)
        try:
            if self._journal.bytes > self._compact_at:
                self._compact()  # before the new entry, whose object is not in its place yet
            self._journal.append(line)
        except JournalError as error:
            self._on_failure(error)
            raise internal(str(error)) from error

    def _load(self) -> None:
        kinds = {kind.resource: kind for kind in KINDS}
        for entry in self._journal.read():
            try:
                self.version = entry["version"]
                if "put" in entry:
                    key = key_of(kinds[entry["put"]], entry["object"])
                    self._place(key, entry["object"], self._objects[key.kind].get(key))
                elif "drop" in entry:
                    self._remove(Key(kinds[entry["drop"]], entry["namespace"], entry["name"]))
            except (KeyError, TypeError) as error:  # a line is missing, or is no entry
                raise JournalError(f"{self._journal.path} does not fit together at version {self.version}: {error!r}") from error
        self._compact()

    def _compact(self) -> None:
        """Rewrite the journal as the objects of now; a first entry keeps the version, which the objects may not show."""
        objects = [(kind, obj) for kind, found in self._objects.items() for obj in found.values()]
        puts = [{"version": self.version, "put": kind.resource, "object": obj} for kind, obj in objects]
        self._journal.rewrite([{"version": self.version}, *puts])
        self._compact_at = self._journal.bytes + COMPACTION_BYTES
