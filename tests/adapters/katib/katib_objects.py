"""Kubernetes and Katib objects as the API gives them, with the fields that the adapter reads."""

from __future__ import annotations

from typing import Any

EXPERIMENT = "r5f0c1d2e3f4a-1a2b3c"
Object = dict[str, Any]


def condition(type_: str, reason: str = "", message: str = "", status: str = "True") -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def experiment(*conditions: Object, **status: Any) -> Object:
    """Return an Experiment; without any condition it has no status, as before its controller looked."""
    thing: Object = {"metadata": {"name": EXPERIMENT, "uid": "e"}, "spec": {}}
    if conditions or status:
        thing["status"] = {"conditions": list(conditions), **status}
    return thing


RUNNING = condition("Running", "ExperimentRunning", "Experiment is running")


def suggestion(*conditions: Object) -> Object:
    return {"metadata": {"name": EXPERIMENT}, "status": {"conditions": list(conditions)}}


def trial(suffix: str, *conditions: Object, values: dict[str, str] | None = None, rules: list[Object] | None = None) -> Object:
    return {
        "metadata": {"name": f"{EXPERIMENT}-{suffix}", "uid": f"t-{suffix}"},
        "spec": {
            "parameterAssignments": [{"name": name, "value": value} for name, value in (values or {}).items()],
            "earlyStoppingRules": rules or [],
        },
        "status": {"conditions": list(conditions)},
    }


def pod(
    suffix: str, phase: str = "Running", *containers: Object, conditions: list[Object] | None = None, **status: Any
) -> Object:
    name = f"{EXPERIMENT}-{suffix}"
    return {
        "metadata": {"name": f"{name}-x7k2m", "labels": {"job-name": name, "batch.kubernetes.io/job-name": name}},
        "status": {"phase": phase, "containerStatuses": list(containers), "conditions": conditions or [], **status},
    }


def container(name: str = "training-container", **state: Any) -> Object:
    """Return a container's status; `state` is waiting={...}, running={...} or terminated={...}."""
    return {"name": name, "state": state}


def ended(code: int, reason: str = "", name: str = "training-container", message: str = "", finished_at: str = "") -> Object:
    reason = reason or ("Completed" if code == 0 else "Error")
    return container(name, terminated={"exitCode": code, "reason": reason, "message": message, "finishedAt": finished_at})


def event(kind: str, name: str, reason: str, message: str, moment: str = "2026-01-01T00:00:00Z") -> Object:
    about = {"kind": kind, "name": name}
    return {"type": "Warning", "reason": reason, "message": message, "involvedObject": about, "lastTimestamp": moment}
