"""What the API server refuses of every object, and what it fills in when one is created. Katib's own rules are in `admission`."""

from __future__ import annotations

import re
from typing import Any

from katib_emulation.kinds import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    NAMESPACES,
    PODS,
    SERVICE_ACCOUNTS,
    WITH_STATUS,
    Kind,
)
from katib_emulation.objects import Object, now, random_suffix
from katib_emulation.statuses import bad_request, invalid

MAX_CONFIG_MAP_BYTES = 1_048_576
WITHOUT_GENERATION = frozenset({NAMESPACES, CONFIG_MAPS, SERVICE_ACCOUNTS, EVENTS})

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_VALUE = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"


def check(kind: Kind, obj: Object) -> None:
    """Check name, labels and a config map's size.

    Raises:
        ApiError: 422.
    """
    metadata = obj["metadata"]
    name = metadata.get("name") or ""
    causes = []
    longest, pattern = (63, _LABEL) if kind is NAMESPACES else (253, _SUBDOMAIN)
    if len(name) > longest or not re.fullmatch(pattern, name):
        what = f"a lowercase RFC 1123 name of at most {longest} bytes (regex used for validation is '{pattern}')"
        causes.append(("metadata.name", f'Invalid value: "{name}": must be {what}'))
    for value in (metadata.get("labels") or {}).values():
        if not isinstance(value, str) or len(value) > 63 or not re.fullmatch(_VALUE, value):
            what = f"a valid label of at most 63 bytes (regex used for validation is '{_VALUE}')"
            causes.append(("metadata.labels", f'Invalid value: "{value}": must be {what}'))
    if kind is CONFIG_MAPS and sum(map(len, map(str.encode, (obj.get("data") or {}).values()))) > MAX_CONFIG_MAP_BYTES:
        causes.append(("[]", f"Too long: may not be more than {MAX_CONFIG_MAP_BYTES} bytes"))
    if causes:
        raise invalid(kind, name, causes)


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
    metadata.update(uid=uid, creationTimestamp=now())
    if kind not in WITHOUT_GENERATION:
        metadata["generation"] = 1
    if kind is NAMESPACES:
        metadata["labels"] = {"kubernetes.io/metadata.name": metadata["name"], **(metadata.get("labels") or {})}
        obj["spec"] = {"finalizers": ["kubernetes"]}
    if kind in WITH_STATUS and not keep_status:
        obj.pop("status", None)
        first = {NAMESPACES: {"phase": "Active"}, JOBS: {}, DEPLOYMENTS: {}, PODS: {"phase": "Pending", "qosClass": "BestEffort"}}
        if kind in first:
            obj["status"] = first[kind]
    if kind is JOBS:
        _complete_job(obj, uid)
    if kind is PODS:
        _complete_pod_spec(obj["spec"])


def _complete_job(job: Object, uid: str) -> None:
    spec = job["spec"]
    for name, value in (("parallelism", 1), ("completions", 1), ("backoffLimit", 6), ("suspend", False)):
        spec.setdefault(name, value)
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    metadata = spec["template"].get("metadata") or {}
    ours = {"controller-uid": uid, "job-name": job["metadata"]["name"]}
    ours |= {f"batch.kubernetes.io/{label}": value for label, value in ours.items()}
    spec["template"]["metadata"] = {**metadata, "labels": {**(metadata.get("labels") or {}), **ours}}
    job["metadata"].setdefault("labels", dict(spec["template"]["metadata"]["labels"]))
    _complete_pod_spec(spec["template"]["spec"])


def _complete_pod_spec(spec: dict[str, Any]) -> None:
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    for container in spec.get("containers") or ():
        limits = (container.setdefault("resources", {}) or {}).get("limits") or {}
        if limits:
            container["resources"]["requests"] = {**limits, **(container["resources"].get("requests") or {})}
