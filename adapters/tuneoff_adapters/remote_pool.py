"""An adapter with a pool of workers that may be beyond this machine."""

from __future__ import annotations

from tuneoff.run.pool_adapter import WithPool


class RemotePool(WithPool):
    """What is there once for each kind of place is a class that inherits this; `make_pool` of each knows its own platforms."""

    def forget(self) -> None:
        """Remove what the run has besides in a service of the user's; idempotent. Its workers have ended, or are ending."""
