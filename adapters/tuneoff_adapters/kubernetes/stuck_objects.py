"""What is still there when an un-deploy runs out of time, what holds it, and the way out: one line. Asks for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tuneoff_adapters.kubernetes.resources import Object, Resource, conditions_of, name_of

NOT_KATIBS = ("foregroundDeletion", "batch.kubernetes.io/job-tracking")  # finalizers that Kubernetes itself removes
_NAMED = 5  # objects that a line names


@dataclass(frozen=True, slots=True)
class Left:
    """An object that is still there."""

    resource: Resource
    thing: Object

    @property
    def text(self) -> str:
        """Its kind, its name and what holds it."""
        held = f"finalizers {', '.join(self.finalizers)}" if self.finalizers else ""
        state = "being deleted" if self.thing.get("metadata", {}).get("deletionTimestamp") else "not deleted yet"
        return f"{self.resource.full_name} {name_of(self.thing)} ({held or state})"

    @property
    def finalizers(self) -> list[str]:
        return list(self.thing.get("metadata", {}).get("finalizers") or [])

    @property
    def waits_for_katib(self) -> bool:
        return any(name not in NOT_KATIBS for name in self.finalizers)


def why(left: Sequence[Left], namespace: Object | None) -> str:
    """Return what is left, and what a namespace that is being deleted says of itself."""
    told = [str(entry.get("message")) for entry in conditions_of(namespace or {}) if entry.get("status") == "True"]
    parts = [some([item.text for item in left]), " ".join(" ".join(told).split())]
    return "; ".join(part for part in parts if part) or "the API server gives no reason"


def release(left: Sequence[Left], namespace: str) -> str:
    """Return what to run where nobody is there to remove Katib's finalizers; empty where nothing waits for that."""
    held = [item for item in left if item.waits_for_katib]
    if not held:
        return ""
    kind = held[0].resource
    names = " ".join(name_of(item.thing) for item in held if item.resource == kind)
    return (
        f"; if Katib is not there to let go, run: kubectl patch {kind.full_name} {names} -n {namespace} "
        """--type=merge -p '{"metadata":{"finalizers":null}}'"""
    )


def some(texts: Sequence[str]) -> str:
    """Return the first texts of a list, and how many more there are."""
    more = len(texts) - _NAMED
    return ", ".join(texts[:_NAMED]) + (f" and {more} more" if more > 0 else "")
