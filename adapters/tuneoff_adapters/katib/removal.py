"""Un-deploy: delete, wait until gone, prove that nothing is left."""

from __future__ import annotations

from tuneoff_adapters.katib.connection import Connection


def remove(connection: Connection, namespace: str, experiment: str, label: tuple[str, str], within_seconds: float) -> float:
    """Delete the experiment and the namespace, wait until both are gone, and prove by the label that nothing is left.

    Returns the seconds until the experiment and its children were gone (without the namespace). Idempotent.

    Raises:
        StepError: something hangs (named, with its finalizers or conditions and the way out), or the server is away.
    """
    raise NotImplementedError
