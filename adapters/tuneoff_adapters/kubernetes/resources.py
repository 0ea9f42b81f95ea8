"""The resources of the Kubernetes API that the adapter uses, by their place in it, and what a status says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

Object = dict[str, Any]  # an object of the API as plain JSON: the SDK's models break on labels (kubernetes >= 36), and are slow
JOB_NAME_LABELS = ("batch.kubernetes.io/job-name", "job-name")  # of a Job's pods, the newer one first
KATIB_GROUP, KATIB_VERSION = "kubeflow.org", "v1beta1"
COLLECTOR = "metrics-logger-and-collector"  # the container that Katib's webhook adds to a trial's pod
TERMINAL = ("Succeeded", "Failed", "EarlyStopped", "MetricsUnavailable", "Killed")  # of a trial; the first two of an experiment
_KILLED = 137  # 128 + SIGKILL


@dataclass(frozen=True, slots=True)
class ApiResource:
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


EXPERIMENTS = ApiResource("experiments", KATIB_GROUP, KATIB_VERSION)
TRIALS = ApiResource("trials", KATIB_GROUP, KATIB_VERSION)
SUGGESTIONS = ApiResource("suggestions", KATIB_GROUP, KATIB_VERSION)
JOBS = ApiResource("jobs", "batch")
PODS = ApiResource("pods")
EVENTS = ApiResource("events")
CONFIG_MAPS = ApiResource("configmaps")
SERVICES = ApiResource("services")
SERVICE_ACCOUNTS = ApiResource("serviceaccounts")
NAMESPACES = ApiResource("namespaces", namespaced=False)
DEPLOYMENTS = ApiResource("deployments", "apps")
REPLICA_SETS = ApiResource("replicasets", "apps")
ROLES = ApiResource("roles", "rbac.authorization.k8s.io")
ROLE_BINDINGS = ApiResource("rolebindings", "rbac.authorization.k8s.io")
ACCESS_REVIEWS = ApiResource("selfsubjectaccessreviews", "authorization.k8s.io", namespaced=False)
VALIDATING_WEBHOOKS = ApiResource("validatingwebhookconfigurations", "admissionregistration.k8s.io", namespaced=False)
MUTATING_WEBHOOKS = ApiResource("mutatingwebhookconfigurations", "admissionregistration.k8s.io", namespaced=False)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a container ended."""

    code: int  # negative: the number of the signal that ended it
    reason: str
    message: str
    finished_at: str = ""  # to the second, by the node's clock


def has(obj: Object, type_: str) -> bool:
    """Tell whether the condition of a type is there and true."""
    entry = condition(obj, type_)
    return entry is not None and entry.get("status") == "True"


def terminal(obj: Object) -> Object | None:
    """Return the condition with which a trial or an experiment ended, or None while it has not.

    An early stopped trial keeps `Running`, and may be called failed or succeeded besides: `EarlyStopped` goes first.
    """
    return next((condition(obj, type_) for type_ in ("EarlyStopped", *TERMINAL) if has(obj, type_)), None)


def phase_of(pod: Object) -> str:
    return str(_status(pod).get("phase") or "Pending")


def has_ended(pod: Object) -> bool:
    """Tell whether all containers of a pod have ended for good."""
    return phase_of(pod) in ("Succeeded", "Failed")


def containers(pod: Object) -> Iterator[tuple[str, Object]]:
    """Yield (name, state) of every container of a pod that the node has reported on, those that prepare it first."""
    for group in ("initContainerStatuses", "containerStatuses"):
        for item in _status(pod).get(group) or []:
            yield str(item.get("name") or ""), item.get("state") or {}


def is_running(pod: Object, container: str) -> bool:
    return any(name == container and "running" in state for name, state in containers(pod))


def image_id_of(pod: Object, container: str) -> str | None:
    """Return which image the node ran, by its digest; None while it has not said so."""
    for item in _status(pod).get("containerStatuses") or []:
        if item.get("name") == container:
            return str(item.get("imageID") or "") or None
    return None


def is_unschedulable(pod: Object) -> bool:
    """Tell whether the scheduler has found no node for a pod."""
    scheduled = condition(pod, "PodScheduled")
    return scheduled is not None and scheduled.get("status") == "False"


def exit_of(pod: Object, container: str) -> Exit | None:
    """Return how a container ended, or None while it has not (or the node never said)."""
    for name, state in containers(pod):
        ended = state.get("terminated")
        if name == container and ended:
            code = ended.get("exitCode")
            code = int(code) if code is not None else _KILLED
            return Exit(
                code=128 - code if 128 < code < 192 else code,  # as a shell tells of a signal
                reason=str(ended.get("reason") or ""),
                message=str(ended.get("message") or ""),
                finished_at=str(ended.get("finishedAt") or ""),
            )
    return None


def _status(obj: Object) -> Object:
    return obj.get("status") or {}
