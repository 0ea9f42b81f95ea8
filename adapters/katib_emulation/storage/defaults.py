"""What the API server fills in when an object is created."""

from __future__ import annotations

from typing import Any

from katib_emulation.kinds import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    NAMESPACES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    WITH_STATUS,
    Kind,
)
from katib_emulation.objects import Object, now, random_suffix
from katib_emulation.statuses import bad_request

MANAGER = "tuneoff-emulated"

WITHOUT_GENERATION = frozenset({NAMESPACES, CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, EVENTS})


def name(kind: Kind, obj: Object, namespace: str | None) -> None:
    """Settle the name (honouring generateName) and the namespace of a new object, in place.

    Raises:
        ApiError: 400, the object names another namespace.
    """
    metadata = obj["metadata"]
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = f"{metadata['generateName']}{random_suffix()}"
    if not kind.namespaced:
        metadata.pop("namespace", None)
        return
    given = metadata.get("namespace")
    if given and namespace and given != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    metadata["namespace"] = namespace or given or "default"


def apply(kind: Kind, obj: Object, uid: str, keep_status: bool) -> None:
    """Complete a checked new object in place: type, metadata, first status, and the defaults of jobs and pods."""
    obj["apiVersion"], obj["kind"] = kind.api_version, kind.kind
    metadata = obj["metadata"]
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"):
        metadata.pop(name, None)
    metadata.update(uid=uid, creationTimestamp=now())
    if kind not in WITHOUT_GENERATION:
        metadata["generation"] = 1
    if kind is NAMESPACES:
        metadata["labels"] = {"kubernetes.io/metadata.name": metadata["name"], **(metadata.get("labels") or {})}
        obj["spec"] = {"finalizers": ["kubernetes"]}
    metadata["managedFields"] = [_managed(kind, obj)]
    if kind in WITH_STATUS and not keep_status:
        obj.pop("status", None)
        first = {NAMESPACES: {"phase": "Active"}, JOBS: {}, DEPLOYMENTS: {}, PODS: {"phase": "Pending", "qosClass": "BestEffort"}}
        if kind in first:
            obj["status"] = first[kind]
    if kind is JOBS:
        _complete_job(obj, uid)
    if kind is PODS:
        _complete_pod_spec(obj["spec"])


def _managed(kind: Kind, obj: Object) -> dict[str, Any]:
    """Say who set which fields: clients parse this map of every object."""
    fields: dict[str, Any] = {f"f:{name}": {} for name in obj if name not in ("apiVersion", "kind", "metadata", "status")}
    labels = obj["metadata"].get("labels")
    if labels:
        fields["f:metadata"] = {"f:labels": {".": {}, **{f"f:{name}": {} for name in labels}}}
    entry = {"manager": MANAGER, "operation": "Update", "apiVersion": kind.api_version, "time": now()}
    return {**entry, "fieldsType": "FieldsV1", "fieldsV1": fields}


def _complete_job(job: Object, uid: str) -> None:
    spec = job["spec"]
    for name, value in {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
    }.items():
        spec.setdefault(name, value)
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed")
    spec["manualSelector"] = False
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    name = job["metadata"]["name"]
    metadata = spec["template"].get("metadata") or {}
    ours = {"controller-uid": uid, "job-name": name}
    ours |= {f"batch.kubernetes.io/{label}": value for label, value in ours.items()}
    spec["template"]["metadata"] = {**metadata, "labels": {**(metadata.get("labels") or {}), **ours}}
    job["metadata"].setdefault("labels", dict(spec["template"]["metadata"]["labels"]))
    _complete_pod_spec(spec["template"]["spec"])


def _complete_pod_spec(spec: dict[str, Any]) -> None:
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("securityContext", {})
    for container in spec.get("containers") or ():
        _, _, tag = str(container.get("image", "")).rpartition("/")[2].partition(":")
        container.setdefault("imagePullPolicy", "Always" if tag in ("", "latest") else "IfNotPresent")
        container.setdefault("resources", {})
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        limits = (container["resources"] or {}).get("limits") or {}
        if limits:
            container["resources"]["requests"] = {**limits, **(container["resources"].get("requests") or {})}
