"""The status of a pod as the kubelet writes it: phase, and the state of each container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from katib_emulation.objects import Object, now, set_condition

NODE_NAME, ADDRESS = "emulated", "127.0.0.1"


def is_finished(pod: Mapping[str, Any]) -> bool:
    """Whether the pod has succeeded or failed."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def set_scheduled(pod: Object) -> None:
    """The pod has its place on the node; its containers are being created."""
    pod["spec"]["nodeName"] = NODE_NAME
    pod["status"] |= {"phase": "Pending", "hostIP": ADDRESS, "startTime": now()}
    set_condition(pod, "PodScheduled")
    set_waiting(pod, "ContainerCreating")


def set_waiting(pod: Object, reason: str, message: str = "", container: str | None = None) -> None:
    """A container (or all) cannot run yet; the others stay as they are, or are being created."""
    waiting = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
    others = {entry["name"]: entry["state"] for entry in pod["status"].get("containerStatuses") or ()}
    states = {spec["name"]: waiting for spec in pod["spec"]["containers"]}
    set_containers(pod, states | {name: state for name, state in others.items() if container not in (None, name)})


def set_running(pod: Object, started: str) -> None:
    """All containers run since `started`."""
    pod["status"] |= {"phase": "Running", "podIP": ADDRESS}
    set_containers(pod, {spec["name"]: {"running": {"startedAt": started}} for spec in pod["spec"]["containers"]})


def terminated(exit_code: int, started: str | None, reason: str | None = None) -> Object:
    """Return the state of a container that has ended."""
    reason = reason or ("Completed" if exit_code == 0 else "Error")
    return {"terminated": {"exitCode": exit_code, "reason": reason, "startedAt": started, "finishedAt": now()}}


def set_finished(pod: Object, states: Mapping[str, Object]) -> None:
    """All containers have ended, in these states by name; the pod has succeeded if each has."""
    codes = [state["terminated"]["exitCode"] for state in states.values()]
    pod["status"] |= {"phase": "Failed" if not codes or any(codes) else "Succeeded", "containerStatuses": []}
    set_containers(pod, states)


def set_containers(pod: Object, states: Mapping[str, Object]) -> None:
    """Write the states of these containers, by name; the others go on."""
    entries = {entry["name"]: entry for entry in pod["status"].get("containerStatuses") or ()}
    images = {spec["name"]: spec.get("image", "") for spec in pod["spec"]["containers"]}
    for name, state in states.items():
        identity = "" if "waiting" in state else f"emulated://{images[name]}"
        about = {"name": name, "image": images[name], "imageID": identity}
        entries[name] = {**about, "ready": "running" in state, "restartCount": 0, "state": state}
    pod["status"]["containerStatuses"] = [entries[name] for name in sorted(entries)]
