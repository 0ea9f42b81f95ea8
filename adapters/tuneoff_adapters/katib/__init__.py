"""Katib. Importing this package imports neither the SDK nor the adapter: every trial's pod imports it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuneoff_adapters.katib.adapter import KatibAdapter

__all__ = ["KatibAdapter"]


def __getattr__(name: str) -> Any:
    """Load the adapter's class when it is asked for."""
    if name == "KatibAdapter":
        from tuneoff_adapters.katib.adapter import KatibAdapter

        return KatibAdapter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
