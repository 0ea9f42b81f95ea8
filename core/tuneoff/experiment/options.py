"""Free options in a file: any JSON values, with finite numbers."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import AfterValidator


def _finite(options: dict[str, Any]) -> dict[str, Any]:
    """Refuse numbers that are not finite anywhere in free options: they have no JSON form."""
    for name, option in options.items():
        odd = _not_finite(option)
        if odd is not None:
            raise ValueError(f"option `{name}` must be a finite number, but got {odd!r}")
    return options


def _not_finite(value: Any) -> float | None:
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return next((odd for odd in map(_not_finite, parts) if odd is not None), None)
    return value if isinstance(value, float) and not math.isfinite(value) else None


Options = Annotated[dict[str, Any], AfterValidator(_finite)]
