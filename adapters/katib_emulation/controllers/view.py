"""The controllers' view of the cluster: a copy of the objects that follows a subscription, and writes that it shows at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from katib_emulation.kinds import EXPERIMENTS, JOBS, SUGGESTIONS, TRIALS, Kind
from katib_emulation.objects import Key, Object, finalizers, key_of, owners
from katib_emulation.statuses import ApiError
from katib_emulation.storage.store import Store


def add_finalizer(obj: Object, name: str) -> None:
    """Add a finalizer, unless it is there."""
    if name not in finalizers(obj):
        obj["metadata"]["finalizers"] = [*finalizers(obj), name]


def remove_finalizer(obj: Object, name: str) -> None:
    """Remove a finalizer, if it is there."""
    obj["metadata"]["finalizers"] = [known for known in finalizers(obj) if known != name]


EXPERIMENT_LABEL = "katib.kubeflow.org/experiment"

WATCHED = (EXPERIMENTS, TRIALS, SUGGESTIONS, JOBS)


class ReconcileError(Exception):
    """Something that Katib foresees went wrong: the object gets a Warning event with this text, and another try later."""


class ClusterView:
    """For one thread. Objects that it returns must not be changed; `touched` is called for every change that it learns of."""

    def __init__(self, store: Store, touched: Callable[[Key, Object], None]) -> None:
        self._store = store
        self._touched = touched
        self._objects: dict[Key, Object] = {}
        self._trials: dict[tuple[str, str], dict[Key, Object]] = {}  # by (namespace, experiment)
        self._first_seen: dict[str, int] = {}  # by uid
        self._events: deque[tuple[Object, str, str, str]] = deque()
        self._subscription = store.subscribe(*WATCHED, initial=True)

    def learn(self, timeout: float | None) -> bool:
        """Take one change in; False if none came within `timeout` seconds, or after `close`."""
        change = self._subscription.next(timeout)
        if change is None:
            return False
        key = key_of(change.kind, change.object)
        known = self._objects.get(key)
        if known is not None and version_of(known) >= change.version:
            return True  # our own write, or older than it
        if change.type == "DELETED":
            self._forget(key)
        else:
            self._place(key, change.object)
        self._touched(key, change.object)
        return True

    def close(self) -> None:
        """End the subscription: a waiting `learn` returns. For every thread."""
        self._subscription.close()

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """Return an object, or None."""
        return self._objects.get(Key(kind, namespace, name))

    def trials(self, namespace: str, experiment: str) -> list[Object]:
        """Return the Trials that carry the experiment's label, the oldest first."""
        found = self._trials.get((namespace, experiment), {}).values()
        return sorted(found, key=lambda trial: self._age(trial["metadata"]))

    def _age(self, metadata: Mapping[str, Any]) -> tuple[str, int]:
        return metadata["creationTimestamp"], self._first_seen[metadata["uid"]]  # timestamps have whole seconds

    def create(self, kind: Kind, obj: Mapping[str, Any], namespace: str, *, keep_status: bool = False) -> Object:
        """Create an object.

        Raises:
            ApiError: as by Store.create.
        """
        return self._wrote(kind, self._store.create(kind, obj, namespace, keep_status=keep_status))

    def create_missing(self, kind: Kind, obj: Mapping[str, Any], namespace: str, *, keep_status: bool = False) -> None:
        """Create an object unless there is one of its name.

        Raises:
            ApiError: as by Store.create, but for 409.
        """
        try:
            self.create(kind, obj, namespace, keep_status=keep_status)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            self._wrote(kind, self._store.get(kind, obj["metadata"]["name"], namespace))

    def update(self, kind: Kind, obj: Object, change: Callable[[Object], None]) -> Object | None:
        """Apply `change` to the newest version of an object; None if it is gone."""
        key = key_of(kind, obj)
        updated = self._store.update(kind, key.name, key.namespace, change)
        if updated is None:
            self._forget(key)
            return None
        return self._wrote(kind, updated)

    def delete(self, kind: Kind, namespace: str, name: str, *, foreground: bool = False) -> None:
        """Delete an object; one that is gone already is no error."""
        try:
            self._store.delete(kind, name, namespace, "Foreground" if foreground else "Background")
        except ApiError as error:
            if error.code != 404:
                raise

    def event(self, about: Object, type_: str, reason: str, message: str) -> None:
        """Have an Event about an object written by `write_event`: nobody waits for events, as in Kubernetes."""
        self._events.append((about, type_, reason, message))

    def write_event(self) -> bool:
        """Write the oldest event that waits; False if there is none."""
        if self._events:
            self._store.record_event(*self._events.popleft())
            return True
        return False

    def _wrote(self, kind: Kind, obj: Object) -> Object:
        key = key_of(kind, obj)
        known = self._objects.get(key)
        if kind in WATCHED and (known is None or version_of(known) < version_of(obj)):
            self._place(key, obj)
            self._touched(key, obj)
        return obj

    def _place(self, key: Key, obj: Object) -> None:
        before, family = self._objects.get(key), _family(key, obj)
        if before is not None and _family(key, before) != family:
            self._forget(key)
        self._objects[key] = obj
        self._first_seen.setdefault(obj["metadata"]["uid"], len(self._first_seen))
        if family is not None:
            self._trials.setdefault(family, {})[key] = obj

    def _forget(self, key: Key) -> None:
        obj = self._objects.pop(key, None)
        family = None if obj is None else _family(key, obj)
        if family is not None:
            self._trials[family].pop(key, None)


def _family(key: Key, obj: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return (namespace, experiment) of a Trial; None for what is none."""
    experiment = (obj["metadata"].get("labels") or {}).get(EXPERIMENT_LABEL)
    return (key.namespace, experiment) if key.kind is TRIALS and experiment is not None else None


def version_of(obj: Mapping[str, Any]) -> int:
    """Return the resourceVersion, which this server counts."""
    return int(obj["metadata"]["resourceVersion"])


def owner_of(obj: Mapping[str, Any], kind: Kind) -> str | None:
    """Return the name of the controlling owner of a kind, None if there is none."""
    return next((o["name"] for o in owners(obj) if o.get("controller") and o.get("kind") == kind.kind), None)


def owned_by(owner: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the ownerReferences of an object that `owner` controls."""
    metadata = owner["metadata"]
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return [{**reference, "controller": True, "blockOwnerDeletion": True}]
