"""Deletion as the API server, the garbage collector and the namespace controller do it together, without their delays.

An object with finalizers is only marked, and goes when the last finalizer is removed. When an owner is gone, what it alone owned
is deleted (background). With foreground propagation the owner waits for what blocks it. Deleting a namespace deletes its content.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

from katib_emulation.kinds import NAMESPACES, PODS
from katib_emulation.objects import Key, Object, copied, finalizers, is_deleting, now, owners
from katib_emulation.storage.table import Table

Propagation = Literal["Background", "Foreground"]

FOREGROUND = "foregroundDeletion"


class Deletion:
    """Deletes objects of the table; called with the table's lock held."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._sweeping: set[str] = set()  # namespaces whose content is being deleted just now

    def request(self, key: Key, propagation: Propagation = "Background") -> Object:
        """Delete an object that exists; return its last state, marked if it stays for its finalizers."""
        if key.kind is NAMESPACES:
            return self._end_namespace(key)
        obj = self._stored(key)
        dependents = self._table.owned(obj["metadata"]["uid"])
        waits = propagation == "Foreground" and bool(dependents)
        if not waits and not finalizers(obj):
            return self._drop(key)
        marked = self._mark(key, FOREGROUND if waits else None)
        if waits:
            for dependent in dependents:
                if self._table.find(dependent):
                    self.request(dependent, "Foreground")
            self._release(key)
        return self._table.find(key) or marked

    def settle(self, key: Key) -> None:
        """Drop the object if its deletion was requested and nobody holds it any longer."""
        obj = self._table.find(key)
        if obj is not None and key.kind is not NAMESPACES and is_deleting(obj) and not finalizers(obj):
            self._drop(key)

    def collect(self, key: Key) -> None:
        """Delete the object if it names owners and none of them exists."""
        obj = self._table.find(key)
        if obj is None:
            return
        named = owners(obj)
        if named and not any(self._table.find_uid(owner["uid"]) for owner in named) and not is_deleting(obj):
            self.request(key)

    def _stored(self, key: Key) -> Object:
        obj = self._table.find(key)
        assert obj is not None, f"{key} must exist"
        return obj

    def _mark(self, key: Key, finalizer: str | None = None) -> Object:
        obj = self._stored(key)
        held = finalizers(obj)
        if is_deleting(obj) and (finalizer is None or finalizer in held):
            return obj
        marked = copied(obj)
        metadata = marked["metadata"]
        metadata.setdefault("deletionTimestamp", now())
        grace = (obj.get("spec") or {}).get("terminationGracePeriodSeconds", 30) if key.kind is PODS else 0
        metadata.setdefault("deletionGracePeriodSeconds", grace)
        if finalizer is not None and finalizer not in held:
            metadata["finalizers"] = [*held, finalizer]
        return self._table.put(key.kind, marked)

    def _drop(self, key: Key) -> Object:
        last = self._table.drop(key)
        for dependent in self._table.owned(last["metadata"]["uid"]):
            self.collect(dependent)
        for owner in owners(last):
            waiting = self._table.find_uid(owner["uid"])
            if waiting is not None:
                self._release(waiting)
        if key.namespace:
            self._refresh_namespace(key.namespace)
        return last

    def _release(self, key: Key) -> None:
        """End the wait of an owner that is deleted in the foreground when nothing blocks it any longer."""
        obj = self._table.find(key)
        if obj is None or FOREGROUND not in finalizers(obj):
            return
        uid = obj["metadata"]["uid"]
        if any(_blocks(self._stored(dependent), uid) for dependent in self._table.owned(uid)):
            return
        released = copied(obj)
        released["metadata"]["finalizers"] = [name for name in finalizers(obj) if name != FOREGROUND]
        self._table.put(key.kind, released)
        self.settle(key)

    def _end_namespace(self, key: Key) -> Object:
        obj = copied(self._stored(key))
        if not is_deleting(obj):
            obj["metadata"]["deletionTimestamp"] = now()
            obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
            self._table.put(NAMESPACES, obj)
        self._sweeping.add(key.name)
        try:
            for content in self._table.content(key.name):
                if self._table.find(content):
                    self.request(content)
        finally:
            self._sweeping.discard(key.name)
        self._refresh_namespace(key.name)
        return self._table.find(key) or obj

    def _refresh_namespace(self, name: str) -> None:
        """Drop a terminating namespace that is empty; else let its conditions say what remains."""
        key = Key(NAMESPACES, "", name)
        namespace = self._table.find(key)
        if namespace is None or not is_deleting(namespace) or name in self._sweeping:
            return
        remaining = self._table.content(name)
        if not remaining:
            self._table.drop(key)
            return
        changed = copied(namespace)
        changed["status"]["conditions"] = _remaining_conditions([self._stored(content) for content in remaining], remaining)
        if changed != namespace:
            self._table.put(NAMESPACES, changed)


def _blocks(dependent: Object, uid: str) -> bool:
    return any(owner["uid"] == uid and owner.get("blockOwnerDeletion") for owner in owners(dependent))


def _remaining_conditions(objects: list[Object], keys: list[Key]) -> list[dict[str, Any]]:
    kinds = Counter(f"{key.kind.plural}.{key.kind.group}" for key in keys)
    holders = Counter(name for obj in objects for name in finalizers(obj))
    resources = ", ".join(f"{resource} has {count} resource instances" for resource, count in sorted(kinds.items()))
    names = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(holders.items()))
    content = {
        "type": "NamespaceContentRemaining",
        "status": "True",
        "reason": "SomeResourcesRemain",
        "message": f"Some resources are remaining: {resources}",
    }
    if not names:
        return [content]
    held = {
        "type": "NamespaceFinalizersRemaining",
        "status": "True",
        "reason": "SomeFinalizersRemain",
        "message": f"Some content in the namespace has finalizers remaining: {names}",
    }
    return [content, held]
