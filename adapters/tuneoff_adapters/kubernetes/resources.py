"""The resources of the Kubernetes API that the adapter uses, by their place in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

Object = dict[str, Any]  # an object of the API as plain JSON: the SDK's models break on labels (kubernetes >= 36), and are slow


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource: `/apis/GROUP/VERSION/[namespaces/NS/]PLURAL`, or `/api/v1/...` for the core group ("")."""

    plural: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True

    def path(self, namespace: str | None = None, name: str = "", subresource: str = "") -> str:
        """Return its path below the server's address; without a namespace: in all of them."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        parts += [quote(part, safe="") for part in (name, subresource) if part]
        return "/".join(parts)

    @property
    def full_name(self) -> str:
        """The name that kubectl takes, e.g. `experiments.kubeflow.org`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


JOB_NAME_LABELS = ("batch.kubernetes.io/job-name", "job-name")  # of a Job's pods, the newer one first
KATIB_GROUP, KATIB_VERSION = "kubeflow.org", "v1beta1"
EXPERIMENTS = Resource("experiments", KATIB_GROUP, KATIB_VERSION)
TRIALS = Resource("trials", KATIB_GROUP, KATIB_VERSION)
SUGGESTIONS = Resource("suggestions", KATIB_GROUP, KATIB_VERSION)
JOBS = Resource("jobs", "batch")
PODS = Resource("pods")
EVENTS = Resource("events")
CONFIG_MAPS = Resource("configmaps")
SERVICES = Resource("services")
SERVICE_ACCOUNTS = Resource("serviceaccounts")
NAMESPACES = Resource("namespaces", namespaced=False)
DEPLOYMENTS = Resource("deployments", "apps")
REPLICA_SETS = Resource("replicasets", "apps")
ROLES = Resource("roles", "rbac.authorization.k8s.io")
ROLE_BINDINGS = Resource("rolebindings", "rbac.authorization.k8s.io")
ACCESS_REVIEWS = Resource("selfsubjectaccessreviews", "authorization.k8s.io", namespaced=False)
VALIDATING_WEBHOOKS = Resource("validatingwebhookconfigurations", "admissionregistration.k8s.io", namespaced=False)
MUTATING_WEBHOOKS = Resource("mutatingwebhookconfigurations", "admissionregistration.k8s.io", namespaced=False)


def name_of(obj: Object) -> str:
    return str(obj.get("metadata", {}).get("name", ""))


def labels_of(obj: Object) -> Mapping[str, str]:
    return obj.get("metadata", {}).get("labels") or {}


def belongs_to(obj: Object, experiment: str) -> bool:
    """Tell whether an object is this Experiment or was made for it; in a namespace with others this tells them apart.

    What Katib makes is called after the Experiment, and what is made of that in turn (Jobs, pods, replica sets) after its owner;
    an execution's names are its own.
    """
    metadata = obj.get("metadata", {})
    names = [metadata.get("name"), *(owner.get("name") for owner in metadata.get("ownerReferences") or [])]
    names += [labels_of(obj).get(key) for key in JOB_NAME_LABELS]
    return any(is_named_after(str(name or ""), experiment) for name in names)


def is_named_after(name: str, experiment: str) -> bool:
    return name == experiment or name.startswith(f"{experiment}-")


def conditions_of(obj: Object) -> list[Object]:
    return obj.get("status", {}).get("conditions") or []


def condition(obj: Object, kind: str) -> Object | None:
    """Return an object's condition of that type, whatever its status, or None."""
    return next((entry for entry in conditions_of(obj) if entry.get("type") == kind), None)


def selector(labels: Mapping[str, str]) -> str:
    """Return a label (or field) selector that asks for all of these."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
