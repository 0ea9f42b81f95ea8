"""Syne Tune. Importing this package imports neither the framework nor the adapter: every trial's process imports it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuneoff_adapters.syne_tune.adapter import SyneTuneAdapter

__all__ = ["SyneTuneAdapter"]


def __getattr__(name: str) -> Any:
    """Load the adapter's class when it is asked for."""
    if name == "SyneTuneAdapter":
        from tuneoff_adapters.syne_tune.adapter import SyneTuneAdapter

        return SyneTuneAdapter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
