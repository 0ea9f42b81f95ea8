"""The objects of the emulated cluster: their kinds, functions over them, refusals, and the store with the API server's rules.

Objects are plain JSON. The store keeps them in memory, with versions, watches, events and deletion. Any thread may call any of
its methods. What goes in and what comes out are copies, but for what is said to be for reading only: a stored object is never
changed in place.
"""

from __future__ import annotations

import contextlib
import marshal
import queue
import random
import re
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, TypeVar, cast

Object = dict[str, Any]
T = TypeVar("T")

SUFFIX_CHARACTERS = "bcdfghjklmnpqrstvwxz2456789"  # of Kubernetes' generated names: no vowels, so that no words appear
_random = random.SystemRandom()  # no seed makes names repeat
KATIB_GROUP, KATIB_VERSION = "kubeflow.org", "v1beta1"


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource of the API: `/apis/GROUP/VERSION/[namespaces/NS/]PLURAL`, or `/api/v1/...` where the group is empty."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """What objects of this kind carry as `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The name in messages and reviews, as in `experiments.kubeflow.org`; plain `pods` for the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


EXPERIMENTS = Kind(KATIB_GROUP, KATIB_VERSION, "experiments", "Experiment")
TRIALS = Kind(KATIB_GROUP, KATIB_VERSION, "trials", "Trial")
SUGGESTIONS = Kind(KATIB_GROUP, KATIB_VERSION, "suggestions", "Suggestion")
JOBS = Kind("batch", "v1", "jobs", "Job")
PODS = Kind("", "v1", "pods", "Pod")
EVENTS = Kind("", "v1", "events", "Event")
CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap")
NAMESPACES = Kind("", "v1", "namespaces", "Namespace", False)
DEPLOYMENTS = Kind("apps", "v1", "deployments", "Deployment")
SERVICES = Kind("", "v1", "services", "Service")
SERVICE_ACCOUNTS = Kind("", "v1", "serviceaccounts", "ServiceAccount")
ROLES = Kind("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDINGS = Kind("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")

KINDS: tuple[Kind, ...] = (EXPERIMENTS, TRIALS, SUGGESTIONS, JOBS, PODS, EVENTS, CONFIG_MAPS, NAMESPACES)
KINDS += (DEPLOYMENTS, SERVICES, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS)  # clients look whether Katib left one behind


class Key(NamedTuple):
    """The identity of an object; the namespace of a cluster-wide object is empty."""

    kind: Kind
    namespace: str
    name: str


def key_of(kind: Kind, obj: Mapping[str, Any]) -> Key:
    """Return the identity of an object that has its name and namespace."""
    return Key(kind, obj["metadata"].get("namespace") or "", obj["metadata"]["name"])


def copied(value: T) -> T:
    """Return a deep copy of JSON (many times faster than copy.deepcopy)."""
    return cast(T, marshal.loads(marshal.dumps(cast(Any, value))))


def now() -> str:
    """Return the time as in metadata: RFC 3339, UTC, whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def random_suffix(length: int = 5) -> str:
    """Return the random end of a generated name."""
    return "".join(_random.choices(SUFFIX_CHARACTERS, k=length))


def finalizers(obj: Mapping[str, Any]) -> list[str]:
    """Return the names of those who still have to agree to the object's end."""
    return list(obj["metadata"].get("finalizers") or ())


def set_finalizer(obj: Object, name: str, is_set: bool) -> None:
    """Add a finalizer at the end, unless it is there, or remove it."""
    others = [other for other in finalizers(obj) if other != name]
    if is_set != (name in finalizers(obj)):
        obj["metadata"]["finalizers"] = [*others, name] if is_set else others


def is_deleting(obj: Mapping[str, Any]) -> bool:
    """Whether the deletion of the object was requested."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def is_finished(pod: Mapping[str, Any]) -> bool:
    """Whether a pod has succeeded or failed."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def owners(obj: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the object's ownerReferences."""
    return list(obj["metadata"].get("ownerReferences") or ())


def owner_of(obj: Mapping[str, Any], kind: Kind) -> str | None:
    """Return the name of the controlling owner of a kind, None if there is none."""
    return next((owner["name"] for owner in owners(obj) if owner.get("controller") and owner.get("kind") == kind.kind), None)


def owned_by(owner: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the ownerReferences of an object that `owner` controls."""
    metadata = owner["metadata"]
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return [{**reference, "controller": True, "blockOwnerDeletion": True}]


def conditions_of(obj: Mapping[str, Any]) -> list[Object]:
    """Return the conditions of an object; none if it has no status."""
    return (obj.get("status") or {}).get("conditions") or []


def find_condition(obj: Mapping[str, Any], kind: str) -> Object | None:
    """Return the condition of a type, whatever its status."""
    return next((condition for condition in conditions_of(obj) if condition["type"] == kind), None)


def has_condition(obj: Mapping[str, Any], *kinds: str) -> bool:
    """Whether a condition of one of the types is True."""
    return any(condition["type"] in kinds and condition["status"] == "True" for condition in conditions_of(obj))


def set_condition(obj: Object, kind: str, reason: str = "", message: str = "", status: str = "True") -> None:
    """Set a condition at the end of the list; nothing happens if it is there with the same status, reason and message."""
    current = find_condition(obj, kind) or {}
    wanted = {"status": status, "reason": reason, "message": message}
    if all(current.get(name, "") == value for name, value in wanted.items()):
        return
    time = now()
    since = current["lastTransitionTime"] if current.get("status") == status else time
    fresh = {"type": kind, **wanted, "lastUpdateTime": time, "lastTransitionTime": since}
    kept = [condition for condition in conditions_of(obj) if condition["type"] != kind]
    obj.setdefault("status", {})["conditions"] = [*kept, {name: value for name, value in fresh.items() if value}]


def stop_running(obj: Object) -> None:
    """Set Running to False, with its old reason, if it is there: what every end does but an early stop."""
    running = find_condition(obj, "Running")
    if running is not None:
        set_condition(obj, "Running", running["reason"], running["message"], "False")


# Refusals

VALIDATOR = "validator.experiment.katib.kubeflow.org"


class StatusError(Exception):
    """A request was refused; `code` is the HTTP status, and `body()` the answer. A denial by a webhook has no reason."""

    def __init__(self, code: int, reason: str | None, message: str) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message

    def body(self) -> dict[str, Any]:
        """Return the Kubernetes Status, without its `details`."""
        head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message}
        return {**head, **({"reason": self.reason} if self.reason is not None else {}), "code": self.code}

    @classmethod
    def not_found(cls, kind: Kind, name: str) -> StatusError:
        """404: the object (or the namespace for it) does not exist."""
        return cls(404, "NotFound", f'{kind.resource} "{name}" not found')

    @classmethod
    def bad_request(cls, message: str) -> StatusError:
        """400: the request itself is malformed."""
        return cls(400, "BadRequest", message)

    @classmethod
    def denied(cls, message: str, webhook: str = VALIDATOR) -> StatusError:
        """400 without a reason: an admission webhook of Katib refused the object."""
        return cls(400, None, f'admission webhook "{webhook}" denied the request: {message}')


# The store

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]
Propagation = Literal["Background", "Foreground"]
Objects = list[Object]  # within the class, `list` is a method
Keys = list[Key]
Admission = Callable[[Object, Object], Object]  # takes (a new object, its Namespace), and returns it as it shall be stored
HISTORY = 1_000  # changes kept for watches that start at an older version; each holds a whole object
FIRST_NAMESPACES = ("default", "kubeflow")
FOREGROUND = "foregroundDeletion"

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_FIRST_STATUS: dict[Kind, Object] = {NAMESPACES: {"phase": "Active"}, JOBS: {}, PODS: {"phase": "Pending"}}
_IDENTITY = ("name", "namespace", "uid", "creationTimestamp", "resourceVersion", "deletionTimestamp")


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change of one object. Objects in it are shared by all subscribers: copy before changing."""

    type: ChangeType
    kind: Kind
    object: Object
    version: int


class Subscription:
    """Delivers every change of the asked kinds in order, from the moment at which it was made, until it is closed."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self.kinds = frozenset(kinds)
        self.is_closed = False
        self.changes: queue.SimpleQueue[WatchEvent | None] = queue.SimpleQueue()  # the store adds to it, under its lock

    def next(self, timeout: float | None = None) -> WatchEvent | None:
        """Return the next change; None after `timeout` seconds without one, and at once when closed."""
        with contextlib.suppress(queue.Empty):
            return None if self.is_closed else self.changes.get(timeout=timeout)
        return None

    def close(self) -> None:
        """End the stream: a waiting `next` returns None. May be called twice and from any thread."""
        self.is_closed = True
        self.changes.put(None)


class Store:
    """All objects of one emulated cluster."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._objects: dict[Kind, dict[Key, Object]] = {kind: {} for kind in KINDS}  # the oldest first
        self._keys: dict[str, Key] = {}  # by uid
        self._owned: dict[str, set[Key]] = {}  # by the owner's uid
        self._version = self._oldest = 0  # `_oldest`: what happened up to it is no longer in the history
        self._history: deque[WatchEvent] = deque(maxlen=HISTORY)
        self._subscriptions: list[Subscription] = []
        self._sweeping: set[str] = set()  # namespaces whose content is being deleted just now
        self._is_closed = False
        for name in FIRST_NAMESPACES:
            self.create(NAMESPACES, {"metadata": {"name": name}})

    # Reading

    def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """Return a copy of an object.

        Raises:
            StatusError: 404.
        """
        obj = self.find(kind, name, namespace)
        if obj is None:
            raise StatusError.not_found(kind, name)
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
                    subscription.changes.put(WatchEvent("ADDED", kind, obj, int(obj["metadata"]["resourceVersion"])))
            for change in self._history if since is not None else ():
                if change.version > since and change.kind in subscription.kinds:  # type: ignore[operator]
                    subscription.changes.put(change)
            self._subscriptions = [other for other in self._subscriptions if not other.is_closed] + [subscription]
            return subscription

    # Changing

    def create(self, kind: Kind, obj: Mapping[str, Any], namespace: str | None = None, admit: Admission | None = None) -> Object:
        """Store a new object and return it with its uid, version, creation time, and the defaults of its kind.

        It lives in the request's namespace, else its own, else `default`. If its owners are all gone it is deleted at once, as by
        the garbage collector.

        Raises:
            StatusError: 404 (no such namespace), 403 (it is terminating), 409, 422.
        """
        fresh: Object = copied(dict(obj))
        metadata = fresh.setdefault("metadata", {})
        own_namespace, name = metadata.pop("namespace", None), metadata.get("name") or ""
        if kind.namespaced:
            metadata["namespace"] = namespace or own_namespace or "default"
        longest, pattern = (63, _LABEL) if kind is NAMESPACES else (253, rf"{_LABEL}(\.{_LABEL})*")
        if len(name) > longest or not re.fullmatch(pattern, name):
            rule = f"must be a lowercase RFC 1123 name of at most {longest} bytes (regex used for validation is '{pattern}')"
            why = f'{kind.kind} "{name}" is invalid: metadata.name: Invalid value: "{name}": {rule}'
            raise StatusError(422, "Invalid", why)
        key = key_of(kind, fresh)
        with self._lock:
            home = self.get(NAMESPACES, key.namespace) if kind.namespaced else {"metadata": {}}
            if is_deleting(home):
                why = f"unable to create new content in namespace {key.namespace} because it is being terminated"
                raise StatusError(403, "Forbidden", f'{kind.resource} "{name}" is forbidden: {why}')
            if key in self._objects[kind]:
                raise StatusError(409, "AlreadyExists", f'{kind.resource} "{name}" already exists')
            if admit is not None:
                fresh = admit(fresh, home)
            fresh["metadata"] |= {"uid": str(uuid.uuid4()), "creationTimestamp": now()}
            fresh["apiVersion"], fresh["kind"] = kind.api_version, kind.kind
            if kind in _FIRST_STATUS:
                fresh.setdefault("status", dict(_FIRST_STATUS[kind]))
            if kind is JOBS:
                fresh["spec"].setdefault("backoffLimit", 6)
                labels = {"controller-uid": fresh["metadata"]["uid"], "job-name": name}
                labels |= {f"batch.kubernetes.io/{label}": value for label, value in labels.items()}
                template = fresh["spec"]["template"]
                template["metadata"] = {**(template.get("metadata") or {})}
                template["metadata"]["labels"] = {**(template["metadata"].get("labels") or {}), **labels}
            stored = copied(self._put(key, fresh))
            self._collect(key)
            return stored

    def update(self, kind: Kind, name: str, namespace: str | None, change: Callable[[Object], None]) -> Object | None:
        """Apply `change` to a copy of the object and store it, as one step; return the result.

        Nothing is stored if nothing changed, or if `change` raises. An object whose deletion was requested
        goes when its last finalizer is removed. None: the object does not exist.
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
                raise StatusError.not_found(kind, name)
            return copied(self._delete(key, propagation))

    def record_event(self, about: Mapping[str, Any], type_: str, reason: str, message: str) -> None:
        """Write a core/v1 Event (`Normal` or `Warning`) about an object. It never fails."""
        metadata = about["metadata"]
        event: Object = {
            "metadata": {"name": f"{metadata['name']}.{random_suffix(16)}"},
            "involvedObject": {"kind": about.get("kind"), "apiVersion": about.get("apiVersion"), "name": metadata["name"]},
            "reason": reason,
            "message": message,
            "type": type_,
            "lastTimestamp": now(),
        }
        with contextlib.suppress(StatusError):  # the namespace is gone or ends: nobody reads its events
            self.create(EVENTS, event, metadata.get("namespace"))

    def close(self) -> None:
        """End all subscriptions; later changes are refused."""
        with self._lock:
            self._is_closed = True
            for subscription in self._subscriptions:
                subscription.close()

    # The one way of every change, under the lock

    def _put(self, key: Key, obj: Object) -> Object:
        """Store `obj` (which must not be changed afterwards) under a new resourceVersion."""
        if self._is_closed:
            raise StatusError(500, "InternalError", "Internal error occurred: the server is ending")
        obj["metadata"]["resourceVersion"] = str(self._version + 1)
        previous = self._objects[key.kind].get(key)
        self._objects[key.kind][key] = obj
        self._keys[obj["metadata"]["uid"]] = key
        for owner in owners(previous or {"metadata": {}}):
            self._owned.get(owner["uid"], set()).discard(key)
        for owner in owners(obj):
            self._owned.setdefault(owner["uid"], set()).add(key)
        self._notify("MODIFIED" if previous else "ADDED", key.kind, obj)
        return obj

    def _drop(self, key: Key) -> Object:
        """Remove an object, and with it what it alone owned; return its last state."""
        previous = self._objects[key.kind].pop(key)
        uid = previous["metadata"]["uid"]
        self._keys.pop(uid, None)
        for owner in owners(previous):
            self._owned.get(owner["uid"], set()).discard(key)
        last = {**previous, "metadata": {**previous["metadata"], "resourceVersion": str(self._version + 1)}}
        self._notify("DELETED", key.kind, last)
        for dependent in self._dependents(uid):
            self._collect(dependent)
        for owner in owners(last):
            if owner["uid"] in self._keys:
                self._release(self._keys[owner["uid"]])
        if key.namespace:
            self._refresh_namespace(key.namespace)
        return last

    def _notify(self, type_: ChangeType, kind: Kind, obj: Object) -> None:
        self._version += 1
        change = WatchEvent(type_, kind, obj, self._version)
        if len(self._history) == HISTORY:
            self._oldest = self._history[0].version
        self._history.append(change)
        for subscription in self._subscriptions:
            if kind in subscription.kinds:
                subscription.changes.put(change)

    # Deletion as API server, garbage collector and namespace controller do it together, without their delays. An object with
    # finalizers is only marked, and goes when the last one is removed. When an owner is gone, what it alone owned is deleted
    # (background). In the foreground the owner waits for what blocks it. Deleting a namespace deletes its content.

    def _delete(self, key: Key, propagation: Propagation = "Background") -> Object:
        obj = self._objects[key.kind][key]
        if key.kind is NAMESPACES:
            obj = copied(obj)
            if not is_deleting(obj):
                obj["metadata"]["deletionTimestamp"] = now()
                obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
                self._put(key, obj)
            self._sweeping.add(key.name)
            for content in list(self._content(key.name)):
                if content in self._objects[content.kind]:
                    self._delete(content)
            self._sweeping.discard(key.name)
            self._refresh_namespace(key.name)
            return self._objects[NAMESPACES].get(key) or obj
        dependents = self._dependents(obj["metadata"]["uid"]) if propagation == "Foreground" else []
        if not dependents and not finalizers(obj):
            return self._drop(key)
        marked = copied(obj)
        marked["metadata"].setdefault("deletionTimestamp", now())
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

    def _content(self, namespace: str) -> Iterator[Key]:
        return (key for objects in self._objects.values() for key in objects if key.namespace == namespace)

    def _refresh_namespace(self, name: str) -> None:
        """Drop a terminating namespace that is empty."""
        key = Key(NAMESPACES, "", name)
        namespace = self._objects[NAMESPACES].get(key)
        if namespace is None or not is_deleting(namespace) or name in self._sweeping:
            return
        if not any(self._content(name)):
            self._drop(key)


def _key(kind: Kind, name: str, namespace: str | None) -> Key:
    return Key(kind, (namespace or "") if kind.namespaced else "", name)
