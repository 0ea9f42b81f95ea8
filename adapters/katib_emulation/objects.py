"""The kinds of objects that the emulated API server keeps, and small functions over objects, which are plain JSON."""

from __future__ import annotations

import marshal
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar, cast

Object = dict[str, Any]
Condition = dict[str, Any]
T = TypeVar("T")

SUFFIX_CHARACTERS = "bcdfghjklmnpqrstvwxz2456789"
"""What Kubernetes makes generated names of: no vowels, so that no words appear."""

_random = random.SystemRandom()  # no seed makes names repeat
KATIB_GROUP, KATIB_VERSION = "kubeflow.org", "v1beta1"
_ADMISSION = "admissionregistration.k8s.io"


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
VALIDATING_WEBHOOKS = Kind(
    _ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False
)
MUTATING_WEBHOOKS = Kind(_ADMISSION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False)

KATIB_KINDS = (EXPERIMENTS, TRIALS, SUGGESTIONS)
SERVING_KINDS = (DEPLOYMENTS, SERVICES, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS)  # clients look whether Katib left one behind
WEBHOOK_KINDS = (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS)
KINDS = (*KATIB_KINDS, JOBS, PODS, EVENTS, CONFIG_MAPS, NAMESPACES, *SERVING_KINDS, *WEBHOOK_KINDS)


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


def conditions_of(obj: Mapping[str, Any]) -> list[Condition]:
    """Return the conditions of an object; none if it has no status."""
    return (obj.get("status") or {}).get("conditions") or []


def find_condition(obj: Mapping[str, Any], kind: str) -> Condition | None:
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
