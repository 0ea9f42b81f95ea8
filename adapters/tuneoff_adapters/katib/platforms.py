"""The difference between the two platforms, all of it: where the API server is, and who starts it."""

from __future__ import annotations

from pathlib import Path

from tuneoff.lifecycle.context import RunContext

EMULATED_MARK = "TUNEOFF_KATIB_EMULATED"  # environment variable with the execution id in the emulated server's process
EMULATED_IMAGE = (
    "tuneoff.local/emulated:1"  # what trials on `emulated` name as their image; the server runs this machine's Python
)


class EmulatedServer:
    """The emulated API server of one execution: a process with its own folder below the framework's."""

    def __init__(self, context: RunContext, ready_seconds: float = 20.0) -> None: ...

    @property
    def kubeconfig(self) -> Path:
        """Where its kubeconfig lies while it serves."""
        raise NotImplementedError

    def start(self) -> Path:
        """Start it, or find the running one by its mark; return the kubeconfig when it is ready to serve (StepError else)."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise StepError in one line if the process ended."""
        raise NotImplementedError

    def end(self) -> None:
        """End it and whatever it started; idempotent, also in a fresh process."""
        raise NotImplementedError

    @property
    def was_started(self) -> bool:
        """Whether this execution ever started one (its folder exists)."""
        raise NotImplementedError
