"""Read the status of Kubernetes objects as plain dicts: conditions, containers, phases. A missing field is never an error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tuneoff_adapters.kubernetes.resources import Object, condition

COLLECTOR = "metrics-logger-and-collector"  # the container that Katib's webhook adds to a trial's pod
TERMINAL = ("Succeeded", "Failed", "EarlyStopped", "MetricsUnavailable", "Killed")  # of a trial; the first two of an experiment

_KILLED = 137  # 128 + SIGKILL


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a container ended; `signal` is the one that ended it, None where it ended by itself."""

    code: int
    reason: str
    message: str
    finished_at: str = ""  # to the second, by the node's clock

    @property
    def signal(self) -> int | None:
        """A container's exit code tells of a signal as a shell does, by 128 + its number."""
        return self.code - 128 if 128 < self.code < 192 else None


def has(thing: Object, type_: str) -> bool:
    """Tell whether the condition of a type is there and true."""
    found = condition(thing, type_)
    return found is not None and found.get("status") == "True"


def terminal(thing: Object) -> Object | None:
    """Return the condition with which a trial or an experiment ended, or None while it has not.

    An early stopped trial keeps `Running`, and may be called failed or succeeded besides: `EarlyStopped` goes first.
    """
    return next((condition(thing, type_) for type_ in ("EarlyStopped", *TERMINAL) if has(thing, type_)), None)


def has_value(trial: Object) -> bool:
    """Tell whether Katib has a value of a trial's objective, its only metric."""
    metrics = ((trial.get("status") or {}).get("observation") or {}).get("metrics") or []
    return any(metric.get("latest") != "unavailable" for metric in metrics)


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
    told = condition(pod, "PodScheduled")
    return told is not None and told.get("status") == "False"


def exit_of(pod: Object, container: str) -> Exit | None:
    """Return how a container ended, or None while it has not (or the node never said)."""
    for name, state in containers(pod):
        ended = state.get("terminated")
        if name == container and ended:
            code = ended.get("exitCode")
            return Exit(
                code=int(code) if code is not None else _KILLED,
                reason=str(ended.get("reason") or ""),
                message=str(ended.get("message") or ""),
                finished_at=str(ended.get("finishedAt") or ""),
            )
    return None


def _status(thing: Object) -> Object:
    return thing.get("status") or {}
