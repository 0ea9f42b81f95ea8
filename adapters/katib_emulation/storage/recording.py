"""Events of the core/v1 API about other objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from katib_emulation.objects import Object, now, now_precisely, random_suffix

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
