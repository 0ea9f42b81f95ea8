"""The objects of the emulated cluster with the rules of the API server: versions, watches, events, deletion; for every thread.

What goes in and what comes out are copies, but for what is said to be for reading only: a stored object is never changed in
place. Each change is in the folder's database before a call returns, so that a server that is killed can be started again.
"""

from __future__ import annotations

import contextlib
import json
import queue
import re
import sqlite3
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from katib_emulation.errors import StatusError, StorageError, bad_request, forbidden, internal, invalid, not_found
from katib_emulation.objects import (
    CONFIG_MAPS,
    EVENTS,
    JOBS,
    KINDS,
    NAMESPACES,
    PODS,
    Key,
    Kind,
    Object,
    copied,
    finalizers,
    is_deleting,
    key_of,
    now,
    owners,
    random_suffix,
    set_condition,
    set_finalizer,
)

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]
Propagation = Literal["Background", "Foreground"]
Objects = list[Object]  # within the class, `list` is a method
Keys = list[Key]

DATABASE = "objects.sqlite"
HISTORY = 1_000  # changes kept for watches that start at an older version; each holds a whole object
FIRST_NAMESPACES = ("default", "kubeflow")
FOREGROUND = "foregroundDeletion"
MAX_CONFIG_MAP_BYTES = 1_048_576

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_VALUE = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_FIRST_STATUS: dict[Kind, Object] = {NAMESPACES: {"phase": "Active"}, JOBS: {}, PODS: {"phase": "Pending"}}
_IDENTITY = ("name", "namespace", "uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp")
_SOURCES = {"Experiment": "experiment-controller", "Suggestion": "suggestion-controller", "Trial": "trial-controller"}
_SOURCES |= {"Job": "job-controller", "Pod": "kubelet"}


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change of one object. Objects in it are shared by all subscribers: copy before changing."""

    type: ChangeType
    kind: Kind
    object: Object
    previous: Object | None  # None: the object is new
    version: int


class Subscription:
    """Delivers every change of the asked kinds in order, from the moment at which it was made, until it is closed."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self.kinds = frozenset(kinds)
        self.is_closed = False
        self._changes: queue.SimpleQueue[WatchEvent | None] = queue.SimpleQueue()

    def deliver(self, change: WatchEvent) -> None:
        """Hand over a change (called by the store, under its lock)."""
        self._changes.put(change)

    def next(self, timeout: float | None = None) -> WatchEvent | None:
        """Return the next change; None after `timeout` seconds without one, and at once when closed."""
        with contextlib.suppress(queue.Empty):
            return None if self.is_closed else self._changes.get(timeout=timeout)
        return None

    def close(self) -> None:
        """End the stream: a waiting `next` returns None. May be called twice and from any thread."""
        self.is_closed = True
        self._changes.put(None)


def open_database(folder: Path) -> sqlite3.Connection:
    """Open the folder's database, which one server at a time may hold; made if missing.

    Raises:
        StorageError: another server holds it, it is damaged, or it cannot be written.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / DATABASE).touch(mode=0o600)
        database = sqlite3.connect(folder / DATABASE, timeout=0, isolation_level=None, check_same_thread=False)
        for line in (
            "PRAGMA locking_mode = EXCLUSIVE",
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = OFF",  # what a killed server has written is there; a machine's failure is of no account
            "CREATE TABLE IF NOT EXISTS objects (kind, namespace, name, object, PRIMARY KEY (kind, namespace, name))",
            "CREATE TABLE IF NOT EXISTS observations (trial, lines)",
        ):
            database.execute(line)
    except (OSError, sqlite3.Error) as error:
        if "locked" in str(error):
            raise StorageError(f"another server uses the folder {folder}; end it, or give another folder") from error
        raise StorageError(f"cannot write {folder / DATABASE}: {error}") from error
    return database


def is_in_use(folder: Path) -> bool:
    """Whether a living server holds the folder; one that is gone counts as free."""
    if (folder / DATABASE).exists():
        try:
            open_database(folder).close()
        except StorageError as error:
            return "another server" in str(error)
    return False


def _raise(error: StorageError) -> None:
    raise error


class Store:
    """All objects of one emulated cluster, kept in `folder`. `on_failure` is told when they cannot be kept any more.

    Raises:
        StorageError: the folder is in use, damaged, or cannot be written.
    """

    def __init__(self, folder: Path, on_failure: Callable[[StorageError], None] = _raise) -> None:
        self.database = open_database(folder)
        self._on_failure = on_failure
        self._lock = threading.RLock()
        self._objects: dict[Kind, dict[Key, Object]] = {kind: {} for kind in KINDS}  # the oldest first
        self._keys: dict[str, Key] = {}  # by uid
        self._owned: dict[str, set[Key]] = {}  # by the owner's uid
        self._history: deque[WatchEvent] = deque(maxlen=HISTORY)
        self._subscriptions: list[Subscription] = []
        self._sweeping: set[str] = set()  # namespaces whose content is being deleted just now
        self._is_closed = False
        self._load(folder)
        for name in FIRST_NAMESPACES:
            self.ensure(NAMESPACES, {"metadata": {"name": name}})

    def _load(self, folder: Path) -> None:
        kinds = {kind.resource: kind for kind in KINDS}
        try:
            for resource, text in self.database.execute("SELECT kind, object FROM objects ORDER BY rowid"):
                obj = json.loads(text)
                self._place(key_of(kinds[resource], obj), obj, None)
        except (sqlite3.Error, ValueError, LookupError, TypeError) as error:
            why = "remove the folder to start without its objects"
            raise StorageError(f"{folder / DATABASE} is damaged ({error}); {why}") from error
        self._version = time.time_ns() // 1000  # above those of every server before
        self._oldest = self._version  # what happened before is not in the history

    # Reading

    def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """Return a copy of an object.

        Raises:
            StatusError: 404.
        """
        obj = self.find(kind, name, namespace)
        if obj is None:
            raise not_found(kind, name)
        return copied(obj)

    def find(self, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
        """Return the object itself, or None: for reading only."""
        with self._lock:
            return self._objects[kind].get(_key(kind, name, namespace))

    def list(self, kind: Kind, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> Objects:
        """Return copies of the objects that carry all `labels`, by name; of every namespace when None."""
        wanted = (labels or {}).items()
        return [copied(obj) for obj in self.view(kind, namespace)[1] if wanted <= (obj["metadata"].get("labels") or {}).items()]

    def view(self, kind: Kind, namespace: str | None = None) -> tuple[int, Objects]:
        """Return (version, the objects themselves by name) of one moment: for reading only."""
        with self._lock:
            return self._version, sorted(self.oldest_first(kind, namespace), key=lambda obj: key_of(kind, obj)[1:])

    def oldest_first(self, kind: Kind, namespace: str | None = None) -> Objects:
        """Return the objects themselves: for reading only."""
        with self._lock:
            return [obj for key, obj in self._objects[kind].items() if namespace in (None, key.namespace)]

    def subscribe(self, *kinds: Kind, since: int | None = None, initial: bool = False) -> Subscription:
        """Return a stream of changes: from now on; after version `since`; or (`initial`) each object as ADDED, then from now on.

        Raises:
            StatusError: 410, the changes after `since` are no longer kept.
        """
        with self._lock:
            if since is not None and not self._oldest <= since <= self._version:
                raise StatusError(410, "Expired", f"too old resource version: {since} ({self._oldest})")
            subscription = Subscription(kinds)
            for kind in kinds if initial else ():
                for obj in self.oldest_first(kind):
                    subscription.deliver(WatchEvent("ADDED", kind, obj, None, int(obj["metadata"]["resourceVersion"])))
            for change in self._history if since is not None else ():
                if change.version > since and change.kind in subscription.kinds:  # type: ignore[operator]
                    subscription.deliver(change)
            self._subscriptions = [other for other in self._subscriptions if not other.is_closed] + [subscription]
            return subscription

    # Changing

    def create(self, kind: Kind, obj: Mapping[str, Any], namespace: str | None = None) -> Object:
        """Store a new object and return it with uid, resourceVersion, generation and creationTimestamp.

        An object whose owners are all gone is deleted at once, as the garbage
        collector would.

        Raises:
            StatusError: 404 (no such namespace), 403 (it is terminating), 409, 422, 400.
        """
        fresh: Object = copied(dict(obj))
        metadata = fresh.setdefault("metadata", {})
        settle_namespace(kind, fresh, namespace)
        _check(kind, fresh)
        key = key_of(kind, fresh)
        with self._lock:
            home = self.get(NAMESPACES, key.namespace) if kind.namespaced else {"metadata": {}}
            if is_deleting(home):
                raise terminating(key)
            if key in self._objects[kind]:
                raise StatusError(409, "AlreadyExists", f'{kind.resource} "{key.name}" already exists')
            metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": now(), "generation": 1}
            _complete(kind, fresh)
            stored = copied(self._put(key, fresh))
            self._collect(key)
            return stored

    def ensure(self, kind: Kind, obj: Mapping[str, Any], namespace: str | None = None) -> None:
        """Create an object unless there is one of its name.

        Raises:
            StatusError: as by `create`, but for 409.
        """
        with self._lock:
            if self.find(kind, obj["metadata"]["name"], namespace) is None:
                self.create(kind, obj, namespace)

    def update(self, kind: Kind, name: str, namespace: str | None, change: Callable[[Object], None]) -> Object | None:
        """Apply `change` to a copy of the object and store it, as one step; return the result.

        Nothing is stored if nothing changed, or if `change` raises. The generation rises if the spec changed. An object whose
        deletion was requested goes when its last finalizer is removed. None: the object does not exist.

        Raises:
            StatusError: 422, the result breaks a rule; 500, it cannot be stored.
        """
        with self._lock:
            key = _key(kind, name, namespace)
            before = self._objects[kind].get(key)
            if before is None:
                return None
            after = copied(before)
            change(after)
            metadata = after["metadata"]
            for field in _IDENTITY:  # no update changes these
                metadata.pop(field, None)
                if field in before["metadata"]:
                    metadata[field] = before["metadata"][field]
            for field in ("finalizers", "labels"):
                if not metadata.get(field):
                    metadata.pop(field, None)
            if after != before:
                _check(kind, after)
                metadata["generation"] += after.get("spec") != before.get("spec")
                self._put(key, after)
                self._settle(key)
            return copied(after)

    def delete(self, kind: Kind, name: str, namespace: str | None = None, propagation: Propagation = "Background") -> Object:
        """Delete an object, with what it owns; return its last state (with a deletionTimestamp: it stays for its finalizers).

        Raises:
            StatusError: 404.
        """
        with self._lock:
            key = _key(kind, name, namespace)
            if key not in self._objects[kind]:
                raise not_found(kind, name)
            return copied(self._delete(key, propagation))

    def record_event(self, about: Mapping[str, Any], type_: str, reason: str, message: str) -> None:
        """Write a core/v1 Event (`Normal` or `Warning`) about an object. It never fails.

        The scheduler's have the newer form: `eventTime` is set, and `lastTimestamp` and `count` are null.
        """
        metadata, kind = about["metadata"], about.get("kind") or ""
        namespace = metadata.get("namespace") or "default"
        involved = {"kind": kind, "apiVersion": about.get("apiVersion"), "name": metadata["name"]}
        involved |= {field: metadata[field] for field in ("namespace", "uid", "resourceVersion") if metadata.get(field)}
        event: Object = {
            "metadata": {"name": f"{metadata['name']}.{random_suffix(16)}"},
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "type": type_,
            "reportingInstance": "",
        }
        if reason == "FailedScheduling":
            precise = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            event |= {"eventTime": precise, "lastTimestamp": None, "source": {}, "reportingComponent": "default-scheduler"}
        else:
            component = _SOURCES.get(kind, "emulated")
            event |= {"count": 1, "firstTimestamp": now(), "lastTimestamp": now(), "source": {"component": component}}
        with contextlib.suppress(StatusError):  # the namespace is gone or ends: nobody reads its events
            self.create(EVENTS, event, namespace)

    def close(self) -> None:
        """End all subscriptions and let go of the folder; later changes are refused."""
        with self._lock:
            self._is_closed = True
            for subscription in self._subscriptions:
                subscription.close()
            self.database.close()

    # The one way of every change, under the lock

    def _put(self, key: Key, obj: Object) -> Object:
        """Store `obj` (which must not be changed afterwards) under a new resourceVersion."""
        obj["metadata"]["resourceVersion"] = str(self._version + 1)
        text = json.dumps(obj, separators=(",", ":"))
        where = "ON CONFLICT (kind, namespace, name) DO UPDATE SET object = excluded.object"  # the order stays that of creation
        self._keep(f"INSERT INTO objects VALUES (?, ?, ?, ?) {where}", (key.kind.resource, key.namespace, key.name, text))
        previous = self._objects[key.kind].get(key)
        self._place(key, obj, previous)
        self._notify("MODIFIED" if previous else "ADDED", key.kind, obj, previous)
        return obj

    def _drop(self, key: Key) -> Object:
        """Remove an object, and with it what it alone owned; return its last state."""
        where = (key.kind.resource, key.namespace, key.name)
        self._keep("DELETE FROM objects WHERE (kind, namespace, name) = (?, ?, ?)", where)
        previous = self._objects[key.kind].pop(key)
        uid = previous["metadata"]["uid"]
        self._keys.pop(uid, None)
        for owner in owners(previous):
            self._owned.get(owner["uid"], set()).discard(key)
        last = {**previous, "metadata": {**previous["metadata"], "resourceVersion": str(self._version + 1)}}
        self._notify("DELETED", key.kind, last, previous)
        for dependent in self._dependents(uid):
            self._collect(dependent)
        for owner in owners(last):
            if owner["uid"] in self._keys:
                self._release(self._keys[owner["uid"]])
        if key.namespace:
            self._refresh_namespace(key.namespace)
        return last

    def _keep(self, line: str, values: tuple[str, ...]) -> None:
        if self._is_closed:
            raise internal("the server is ending")
        try:
            self.database.execute(line, values)
        except sqlite3.Error as error:
            failure = StorageError(f"cannot write {DATABASE}: {error}")
            self._on_failure(failure)
            raise internal(str(failure)) from error

    def _place(self, key: Key, obj: Object, previous: Object | None) -> None:
        self._objects[key.kind][key] = obj
        self._keys[obj["metadata"]["uid"]] = key
        for owner in owners(previous or {"metadata": {}}):
            self._owned.get(owner["uid"], set()).discard(key)
        for owner in owners(obj):
            self._owned.setdefault(owner["uid"], set()).add(key)

    def _notify(self, type_: ChangeType, kind: Kind, obj: Object, previous: Object | None) -> None:
        self._version += 1
        change = WatchEvent(type_, kind, obj, previous, self._version)
        if len(self._history) == HISTORY:
            self._oldest = self._history[0].version
        self._history.append(change)
        for subscription in self._subscriptions:
            if kind in subscription.kinds:
                subscription.deliver(change)

    # Deletion as API server, garbage collector and namespace controller do it together, without their delays. An object with
    # finalizers is only marked, and goes when the last one is removed. When an owner is gone, what it alone owned is deleted
    # (background). In the foreground the owner waits for what blocks it. Deleting a namespace deletes its content.

    def _delete(self, key: Key, propagation: Propagation = "Background") -> Object:
        obj = self._objects[key.kind][key]
        if key.kind is NAMESPACES:
            return self._end_namespace(key)
        dependents = self._dependents(obj["metadata"]["uid"]) if propagation == "Foreground" else []
        if not dependents and not finalizers(obj):
            return self._drop(key)
        marked = copied(obj)
        grace = (obj.get("spec") or {}).get("terminationGracePeriodSeconds", 30) if key.kind is PODS else 0
        for name, value in (("deletionTimestamp", now()), ("deletionGracePeriodSeconds", grace)):
            marked["metadata"].setdefault(name, value)
        if dependents:
            set_finalizer(marked, FOREGROUND, True)
        if marked != obj:
            self._put(key, marked)
        for dependent in dependents:
            if dependent in self._objects[dependent.kind]:
                self._delete(dependent, "Foreground")
        self._release(key)
        return self._objects[key.kind].get(key) or marked

    def _dependents(self, uid: str) -> Keys:
        return sorted(self._owned.get(uid, ()), key=lambda key: (key.kind.plural, key.name))

    def _settle(self, key: Key) -> None:
        """Drop the object if its deletion was requested and nobody holds it any longer."""
        obj = self._objects[key.kind].get(key)
        if obj is not None and key.kind is not NAMESPACES and is_deleting(obj) and not finalizers(obj):
            self._drop(key)

    def _collect(self, key: Key) -> None:
        """Delete the object if it names owners and none of them exists."""
        obj = self._objects[key.kind].get(key)
        if obj is not None and owners(obj) and not is_deleting(obj) and not any(o["uid"] in self._keys for o in owners(obj)):
            self._delete(key)

    def _release(self, key: Key) -> None:
        """End the wait of an owner that is deleted in the foreground when nothing blocks it any longer."""
        obj = self._objects[key.kind].get(key)
        if obj is None or FOREGROUND not in finalizers(obj):
            return
        uid = obj["metadata"]["uid"]
        references = [owner for held in self._dependents(uid) for owner in owners(self._objects[held.kind][held])]
        if not any(owner["uid"] == uid and owner.get("blockOwnerDeletion") for owner in references):
            released = copied(obj)
            set_finalizer(released, FOREGROUND, False)
            self._put(key, released)
            self._settle(key)

    def _end_namespace(self, key: Key) -> Object:
        obj = copied(self._objects[NAMESPACES][key])
        if not is_deleting(obj):
            obj["metadata"]["deletionTimestamp"] = now()
            obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
            self._put(key, obj)
        self._sweeping.add(key.name)
        try:
            for content in list(self._content(key.name)):
                if content in self._objects[content.kind]:
                    self._delete(content)
        finally:
            self._sweeping.discard(key.name)
        self._refresh_namespace(key.name)
        return self._objects[NAMESPACES].get(key) or obj

    def _content(self, namespace: str) -> Iterator[Key]:
        return (key for objects in self._objects.values() for key in objects if key.namespace == namespace)

    def _refresh_namespace(self, name: str) -> None:
        """Drop a terminating namespace that is empty; else let its conditions say what remains."""
        key = Key(NAMESPACES, "", name)
        namespace = self._objects[NAMESPACES].get(key)
        if namespace is None or not is_deleting(namespace) or name in self._sweeping:
            return
        remaining = list(self._content(name))
        if not remaining:
            self._drop(key)
            return
        kinds = Counter(f"{content.kind.plural}.{content.kind.group}" for content in remaining)
        resources = ", ".join(f"{resource} has {count} resource instances" for resource, count in sorted(kinds.items()))
        changed, text = copied(namespace), f"Some resources are remaining: {resources}"
        set_condition(changed, "NamespaceContentRemaining", "SomeResourcesRemain", text)
        if changed != namespace:
            self._put(key, changed)


def terminating(key: Key) -> StatusError:
    """403: nothing is created in a namespace that is being deleted."""
    why = f"unable to create new content in namespace {key.namespace} because it is being terminated"
    return forbidden(key.kind, key.name, why)


def settle_namespace(kind: Kind, obj: Object, namespace: str | None) -> None:
    """Complete the namespace of a new object in place: that of the request, else its own, else `default`.

    Raises:
        StatusError: 400, the object names another one than the request.
    """
    metadata = obj["metadata"]
    object_namespace = metadata.pop("namespace", None)
    if not kind.namespaced:
        return
    if object_namespace and namespace and object_namespace != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    metadata["namespace"] = namespace or object_namespace or "default"


def _key(kind: Kind, name: str, namespace: str | None) -> Key:
    return Key(kind, (namespace or "") if kind.namespaced else "", name)


def _check(kind: Kind, obj: Object) -> None:
    """Check name, labels and a config map's size, as the API server does for every object.

    Raises:
        StatusError: 422.
    """
    metadata = obj["metadata"]
    name, causes = metadata.get("name") or "", []
    longest, pattern = (63, _LABEL) if kind is NAMESPACES else (253, _SUBDOMAIN)
    if len(name) > longest or not re.fullmatch(pattern, name):
        rule = f"a lowercase RFC 1123 name of at most {longest} bytes (regex used for validation is '{pattern}')"
        causes.append(f'metadata.name: Invalid value: "{name}": must be {rule}')
    for value in (metadata.get("labels") or {}).values():
        if not isinstance(value, str) or len(value) > 63 or not re.fullmatch(_VALUE, value):
            rule = f"a valid label of at most 63 bytes (regex used for validation is '{_VALUE}')"
            causes.append(f'metadata.labels: Invalid value: "{value}": must be {rule}')
    if kind is CONFIG_MAPS and sum(map(len, map(str.encode, (obj.get("data") or {}).values()))) > MAX_CONFIG_MAP_BYTES:
        causes.append(f"[]: Too long: may not be more than {MAX_CONFIG_MAP_BYTES} bytes")
    if causes:
        raise invalid(kind, name, causes)


def _complete(kind: Kind, obj: Object) -> None:
    """Fill in what the API server does: type, first status, and the defaults of Jobs."""
    obj["apiVersion"], obj["kind"] = kind.api_version, kind.kind
    if kind in _FIRST_STATUS:
        obj.setdefault("status", dict(_FIRST_STATUS[kind]))
    if kind is JOBS:
        obj["spec"].setdefault("backoffLimit", 6)
        labels = {"controller-uid": obj["metadata"]["uid"], "job-name": obj["metadata"]["name"]}
        labels |= {f"batch.kubernetes.io/{name}": value for name, value in labels.items()}
        template = obj["spec"]["template"]
        template["metadata"] = {**(template.get("metadata") or {})}
        template["metadata"]["labels"] = {**(template["metadata"].get("labels") or {}), **labels}
        obj["metadata"].setdefault("labels", dict(template["metadata"]["labels"]))
