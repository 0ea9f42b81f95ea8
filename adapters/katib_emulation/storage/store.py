"""The objects of the emulated cluster with the rules of the API server; safe to use from every thread.

What goes in and what comes out are copies. Everything is kept in the folder's journal before a call returns.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from katib_emulation.kinds import CONFIG_MAPS, EVENTS, NAMESPACES, SERVICE_ACCOUNTS, Kind
from katib_emulation.objects import (
    Key,
    Object,
    copied,
    finalizers,
    is_deleting,
    key_of,
    labels_match,
    now,
    now_precisely,
    random_suffix,
)
from katib_emulation.statuses import ApiError, already_exists, not_found, terminating
from katib_emulation.storage import defaults
from katib_emulation.storage.deletion import Deletion, Propagation
from katib_emulation.storage.journal import Journal, JournalError
from katib_emulation.storage.table import Subscription, Table

COMPONENTS = {
    "Experiment": "experiment-controller",
    "Suggestion": "suggestion-controller",
    "Trial": "trial-controller",
    "Job": "job-controller",
    "Pod": "kubelet",
}


def event_of(about: Mapping[str, Any], type_: str, reason: str, message: str) -> Object:
    """Return the Event for one occurrence.

    The scheduler writes the newer form: `eventTime` is set, and `lastTimestamp` and `count` are null.
    """
    metadata = about["metadata"]
    namespace = metadata.get("namespace") or "default"
    involved = {"kind": about.get("kind"), "apiVersion": about.get("apiVersion"), "name": metadata["name"]}
    involved |= {field: metadata[field] for field in ("namespace", "uid", "resourceVersion") if metadata.get(field)}
    scheduled = reason == "FailedScheduling"
    component = "default-scheduler" if scheduled else COMPONENTS.get(about.get("kind") or "", "emulated")
    time = now()
    return {
        "metadata": {"name": f"{metadata['name']}.{random_suffix(16)}", "namespace": namespace},
        "involvedObject": involved,
        "reason": reason,
        "message": message,
        "type": type_,
        "source": {} if scheduled else {"component": component},
        "reportingComponent": component,
        "reportingInstance": "",
        "eventTime": now_precisely() if scheduled else None,
        "firstTimestamp": None if scheduled else time,
        "lastTimestamp": None if scheduled else time,
        **({"action": "Scheduling"} if scheduled else {"count": 1}),
    }


Objects = list[Object]  # within the class, `list` is a method

FIRST_NAMESPACES = ("default", "kube-system", "kubeflow")


def _raise(error: JournalError) -> None:
    raise error


class Store:
    """All objects of one emulated cluster, kept in `folder`.

    Raises:
        JournalError: the folder is in use, damaged, or cannot be written.
    """

    def __init__(self, folder: Path, on_failure: Callable[[JournalError], None] = _raise) -> None:
        self._table = Table(Journal(folder), on_failure)
        self._deletion = Deletion(self._table)
        self._events: dict[tuple[str | None, str, str, str], str] = {}  # what was said about an object -> the Event's name
        for name in FIRST_NAMESPACES:
            if self._table.find(Key(NAMESPACES, "", name)) is None:
                self.create(NAMESPACES, {"metadata": {"name": name}})

    def create(self, kind: Kind, obj: Mapping[str, Any], namespace: str | None = None, *, keep_status: bool = False) -> Object:
        """Store a new object and return it with uid, resourceVersion, generation and creationTimestamp.

        Its `status` is dropped unless `keep_status`; `metadata.generateName` is honoured. An object whose owners are all gone is
        deleted at once, as the garbage collector would.

        Raises:
            ApiError: 404 (no such namespace), 403 (it is terminating), 409, 422, 400.
        """
        fresh: Object = copied(dict(obj))
        metadata = fresh.setdefault("metadata", {})
        defaults.name(kind, fresh, namespace)
        defaults.check(kind, fresh)
        with self._table.lock:
            self._check_namespace(key_of(kind, fresh))

            key, name = key_of(kind, fresh), metadata["name"]
            if self._table.find(key) is not None:
                raise already_exists(kind, name)
            defaults.apply(kind, fresh, str(uuid.uuid4()), keep_status)
            stored = copied(self._table.put(kind, fresh))
            if kind is NAMESPACES:
                self._furnish(name)
            self._deletion.collect(key)
            return stored

    def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """Return a copy of an object.

        Raises:
            ApiError: 404.
        """
        found = self._table.find(_key(kind, name, namespace))
        if found is None:
            raise not_found(kind, name)
        return copied(found)

    def list(self, kind: Kind, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> Objects:
        """Return copies of the objects that carry all `labels`, by name; of every namespace when None."""
        return [copied(obj) for obj in self.view(kind, namespace)[1] if labels_match(obj, labels or {})]

    def view(self, kind: Kind, namespace: str | None = None) -> tuple[int, Objects]:
        """Return (version, the objects themselves by name) of one moment: for reading only."""
        with self._table.lock:
            return self._table.version, sorted(self._table.values(kind, namespace), key=lambda obj: key_of(kind, obj)[1:])

    def oldest_first(self, kind: Kind, namespace: str) -> Objects:
        """Return the objects themselves: for reading only."""
        return self._table.values(kind, namespace)

    def find(self, kind: Kind, name: str, namespace: str) -> Object | None:
        """Return the object itself, or None: for reading only."""
        return self._table.find(_key(kind, name, namespace))

    def ensure(self, kind: Kind, obj: Mapping[str, Any], namespace: str | None = None, *, keep_status: bool = False) -> None:
        """Create an object unless there is one of its name.

        Raises:
            ApiError: as by `create`, but for 409.
        """
        with self._table.lock:
            if self._table.find(_key(kind, obj["metadata"]["name"], namespace)) is None:
                self.create(kind, obj, namespace, keep_status=keep_status)

    def discard(self, kind: Kind, name: str, namespace: str, propagation: Propagation = "Background") -> None:
        """Delete an object if it exists."""
        with self._table.lock:
            if self._table.find(_key(kind, name, namespace)) is not None:
                self.delete(kind, name, namespace, propagation)

    def update(self, kind: Kind, name: str, namespace: str | None, change: Callable[[Object], None]) -> Object | None:
        """Apply `change` to a copy of the object and store it, as one step; return the result.

        Nothing is stored if nothing changed, or if `change` raises. The generation rises if the spec changed. An object whose
        deletion was requested goes when its last finalizer is removed. None: the object does not exist.

        Raises:
            ApiError: 422, the result breaks a rule; 500, it cannot be stored.
        """
        with self._table.lock:
            key = _key(kind, name, namespace)
            before = self._table.find(key)
            if before is None:
                return None
            after: Object = copied(before)
            change(after)
            _keep_identity(before, after)
            if after != before:
                defaults.check(kind, after)
                if "generation" in before["metadata"] and after.get("spec") != before.get("spec"):
                    after["metadata"]["generation"] = before["metadata"]["generation"] + 1
                after = self._table.put(kind, after)
                self._deletion.settle(key)
            return copied(after)

    def delete(self, kind: Kind, name: str, namespace: str | None = None, propagation: Propagation = "Background") -> Object:
        """Delete an object, with what it owns; return its last state (with a deletionTimestamp: it stays for its finalizers).

        Raises:
            ApiError: 404.
        """
        with self._table.lock:
            key = _key(kind, name, namespace)
            if self._table.find(key) is None:
                raise not_found(kind, name)
            return copied(self._deletion.request(key, propagation))

    def subscribe(self, *kinds: Kind, since: int | None = None, initial: bool = False) -> Subscription:
        """Return a stream of changes: from now on; after version `since`; or (`initial`) each object as ADDED, then from now on.

        Raises:
            ApiError: 410, the changes after `since` are no longer kept.
        """
        return self._table.subscribe(kinds, since, initial)

    def record_event(self, about: Mapping[str, Any], type_: str, reason: str, message: str) -> None:
        """Write a core/v1 Event (`Normal` or `Warning`) about an object; a repeated one is counted. It never fails."""
        event = event_of(about, type_, reason, message)
        namespace = event["metadata"]["namespace"]
        try:
            with self._table.lock:
                what = (event["involvedObject"].get("uid"), type_, reason, message)
                known = self._events.get(what)
                if known is None or self.update(EVENTS, known, namespace, _count_again) is None:
                    self._events[what] = self.create(EVENTS, event, namespace)["metadata"]["name"]
        except ApiError:  # the namespace is gone or ends: nobody reads its events
            return

    def close(self) -> None:
        """End all subscriptions and let go of the folder; later changes are refused."""
        self._table.close()

    def _check_namespace(self, key: Key) -> None:
        if not key.kind.namespaced:
            return
        namespace = self._table.find(Key(NAMESPACES, "", key.namespace))
        if namespace is None:
            raise not_found(NAMESPACES, key.namespace)
        if is_deleting(namespace):
            raise terminating(key.kind, key.name, key.namespace)

    def _furnish(self, namespace: str) -> None:
        """Create what every namespace of a cluster has."""
        self.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace)
        self.create(CONFIG_MAPS, {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": ""}}, namespace)


def _key(kind: Kind, name: str, namespace: str | None) -> Key:
    return Key(kind, (namespace or "") if kind.namespaced else "", name)


def _keep_identity(before: Object, after: Object) -> None:
    """Undo what no update may change, and end the wish to delete for nobody."""
    for name in ("name", "namespace", "uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp"):
        after["metadata"].pop(name, None)
        if name in before["metadata"]:
            after["metadata"][name] = before["metadata"][name]
    if not finalizers(after):
        after["metadata"].pop("finalizers", None)
    if not after["metadata"].get("labels"):
        after["metadata"].pop("labels", None)


def _count_again(event: Object) -> None:
    event |= {"count": (event.get("count") or 1) + 1, "lastTimestamp": now()}
