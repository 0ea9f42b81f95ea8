"""What the controllers share: how objects are found, and how they belong together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from katib_emulation.kinds import TRIALS, Kind
from katib_emulation.objects import Key, Object, finalizers, owners
from katib_emulation.storage.store import Store

EXPERIMENT_LABEL = "katib.kubeflow.org/experiment"


class ReconcileError(Exception):
    """Something that Katib foresees went wrong: the object gets a Warning event with this text, and another try later."""


def add_finalizer(obj: Object, name: str) -> None:
    """Add a finalizer, unless it is there."""
    if name not in finalizers(obj):
        obj["metadata"]["finalizers"] = [*finalizers(obj), name]


def remove_finalizer(obj: Object, name: str) -> None:
    """Remove a finalizer, if it is there."""
    obj["metadata"]["finalizers"] = [known for known in finalizers(obj) if known != name]


def place_of(obj: Mapping[str, Any]) -> tuple[str, str]:
    """Return (name, namespace) of an object."""
    return obj["metadata"]["name"], obj["metadata"]["namespace"]


def trials_of(store: Store, experiment: Key) -> list[Object]:
    """Return the Trials that carry the experiment's label, the oldest first: for reading only."""
    return [
        trial
        for trial in store.oldest_first(TRIALS, experiment.namespace)
        if (trial["metadata"].get("labels") or {}).get(EXPERIMENT_LABEL) == experiment.name
    ]


def owner_of(obj: Mapping[str, Any], kind: Kind) -> str | None:
    """Return the name of the controlling owner of a kind, None if there is none."""
    return next((o["name"] for o in owners(obj) if o.get("controller") and o.get("kind") == kind.kind), None)


def owned_by(owner: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the ownerReferences of an object that `owner` controls."""
    metadata = owner["metadata"]
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return [{**reference, "controller": True, "blockOwnerDeletion": True}]
