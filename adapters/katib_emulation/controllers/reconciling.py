"""What every controller has."""

from __future__ import annotations

from typing import Protocol

from katib_emulation.objects import Key, Object


class ReconcileError(Exception):
    """Something that Katib foresees went wrong: the object gets a Warning event with this text, and another try later."""


class Reconciler(Protocol):
    """Brings the objects of one kind one step nearer to what they ask for."""

    def reconcile(self, obj: Object) -> float | None:
        """Do the next step for an object, which must not be changed; return after how many seconds to look again, if at all."""

    def forget(self, key: Key) -> None:
        """Let go of what is kept for an object that does not exist any more."""

    def event_text(self, error: Exception) -> str:
        """Return the message of the Warning event for an error."""
