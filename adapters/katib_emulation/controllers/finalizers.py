"""Setting and removing finalizers in an object under change."""

from __future__ import annotations

from katib_emulation.objects import Object, finalizers


def add_finalizer(obj: Object, name: str) -> None:
    """Add a finalizer, unless it is there."""
    if name not in finalizers(obj):
        obj["metadata"]["finalizers"] = [*finalizers(obj), name]


def remove_finalizer(obj: Object, name: str) -> None:
    """Remove a finalizer, if it is there."""
    obj["metadata"]["finalizers"] = [known for known in finalizers(obj) if known != name]
