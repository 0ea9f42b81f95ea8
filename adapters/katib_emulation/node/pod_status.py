"""The status of a pod as the kubelet writes it: phase, conditions, and the state of each container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from katib_emulation.objects import Object, now

NODE_NAME = "emulated"
ADDRESS = "127.0.0.1"
FINISHED = ("Succeeded", "Failed")


def phase_of(pod: Mapping[str, Any]) -> str:
    """Return the pod's phase; one without a status is Pending."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_finished(pod: Mapping[str, Any]) -> bool:
    """Whether the pod has succeeded or failed."""
    return phase_of(pod) in FINISHED


def set_condition(pod: Object, type_: str, status: bool, reason: str = "", message: str = "") -> None:
    """Set one condition; the time of its last change stays if its status does."""
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    known = next((condition for condition in conditions if condition["type"] == type_), None)
    text = "True" if status else "False"
    fresh: Object = {"type": type_, "status": text, "lastProbeTime": None}
    fresh["lastTransitionTime"] = known["lastTransitionTime"] if known and known["status"] == text else now()
    fresh |= {key: value for key, value in (("reason", reason), ("message", message)) if value}
    conditions[:] = [fresh if condition is known else condition for condition in conditions]
    if known is None:
        conditions.append(fresh)


def set_unschedulable(pod: Object, message: str) -> None:
    """The scheduler found no place for the pod."""
    pod.setdefault("status", {})["phase"] = "Pending"
    set_condition(pod, "PodScheduled", False, "Unschedulable", message)


def set_scheduled(pod: Object) -> None:
    """The pod has its place on the node; its containers are being created."""
    pod["spec"]["nodeName"] = NODE_NAME
    status = pod.setdefault("status", {})
    status |= {"phase": "Pending", "hostIP": ADDRESS, "startTime": now()}
    set_condition(pod, "PodScheduled", True)
    set_condition(pod, "Initialized", True)
    set_waiting(pod, "ContainerCreating")


def set_waiting(pod: Object, reason: str, message: str = "", container: str | None = None) -> None:
    """A container (or all) cannot run yet; the others stay as they are, or are being created."""
    known = {entry["name"]: entry for entry in pod["status"].get("containerStatuses") or ()}
    waiting = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
    entries = []
    for spec in pod["spec"]["containers"]:
        is_meant = container is None or spec["name"] == container
        before = known.get(spec["name"])
        state = waiting if is_meant or before is None else before["state"]
        entries.append(_container(pod, spec, state))
    _set_containers(pod, entries, is_ready=False, reason="ContainersNotReady")


def set_running(pod: Object, started: str) -> None:
    """All containers run since `started`."""
    pod["status"] |= {"phase": "Running", "podIP": ADDRESS, "podIPs": [{"ip": ADDRESS}]}
    entries = [_container(pod, spec, {"running": {"startedAt": started}}) for spec in pod["spec"]["containers"]]
    _set_containers(pod, entries, is_ready=True)


def terminated(exit_code: int, started: str | None, reason: str | None = None) -> Object:
    """Return the state of a container that has ended."""
    return {
        "terminated": {
            "exitCode": exit_code,
            "reason": reason or ("Completed" if exit_code == 0 else "Error"),
            "startedAt": started,
            "finishedAt": now(),
        }
    }


def set_ended(pod: Object, states: Mapping[str, Object]) -> None:
    """Some containers have ended, in these states by name; the others go on."""
    entries = [
        _container(pod, spec, states.get(spec["name"]) or _state_of(pod, spec["name"])) for spec in pod["spec"]["containers"]
    ]
    _set_containers(pod, entries, is_ready=False, reason="ContainersNotReady")


def set_finished(pod: Object, states: Mapping[str, Object]) -> None:
    """All containers have ended, in these states by name; the pod has succeeded if each has."""
    codes = [state["terminated"]["exitCode"] for state in states.values()]
    succeeded = bool(codes) and not any(codes)
    pod.setdefault("status", {})["phase"] = "Succeeded" if succeeded else "Failed"
    entries = [_container(pod, spec, states[spec["name"]]) for spec in pod["spec"]["containers"] if spec["name"] in states]
    _set_containers(pod, entries, is_ready=False, reason="PodCompleted" if succeeded else "PodFailed")


def _state_of(pod: Mapping[str, Any], container: str) -> Object:
    entries = pod["status"].get("containerStatuses") or ()
    return next((dict(entry["state"]) for entry in entries if entry["name"] == container), {})


def _container(pod: Object, spec: Mapping[str, Any], state: Mapping[str, Any]) -> Object:
    runs, waits = "running" in state, "waiting" in state
    identity = f"emulated://{pod['metadata']['uid']}/{spec['name']}"
    entry: Object = {
        "name": spec["name"],
        "image": spec.get("image", ""),
        "imageID": "" if waits else f"emulated://{spec.get('image', '')}",
        "containerID": "" if waits else identity,
        "ready": runs,
        "started": runs,
        "restartCount": 0,
        "state": dict(state),
        "lastState": {},
    }
    if "terminated" in state:
        entry["state"] = {"terminated": {**state["terminated"], "containerID": identity}}
    return entry


def _set_containers(pod: Object, entries: list[Object], is_ready: bool, reason: str = "") -> None:
    pod["status"]["containerStatuses"] = sorted(entries, key=lambda entry: str(entry["name"]))
    message = (
        f"containers with unready status: [{' '.join(entry['name'] for entry in entries)}]"
        if reason == "ContainersNotReady"
        else ""
    )
    for type_ in ("Ready", "ContainersReady"):
        set_condition(pod, type_, is_ready, reason, message)
