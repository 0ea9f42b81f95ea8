"""JSON values of results: what is not finite is null, and every null has its reason beside it where one is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import PurePath
from typing import Any

BELOW, BEYOND, UNDEFINED = "infinite: below any number", "infinite: beyond any number", "not a number"
_BARE = (str, int, float)  # half the time of `str | int | float`, which is built anew in every call


def field_values(instance: Any, because: Mapping[str, str | None] | None = None, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the fields of a dataclass, as `values` does."""
    return values(instance, [item.name for item in fields(instance) if item.name not in without], because)


def values(instance: Any, names: Sequence[str], because: Mapping[str, str | None] | None = None) -> dict[str, Any]:
    """Return attributes, and beside a null why: as `because` says, or that the number is not finite."""
    result: dict[str, Any] = {}
    for name in names:
        value = getattr(instance, name)
        result[name] = plain(value)
        reason = (because or {}).get(name) if value is None else _not_finite(value)
        if result[name] is None and reason:
            result[f"{name}_reason_if_null"] = reason
    return result


def plain(value: Any) -> Any:
    """Return JSON values with null for what JSON has no word for."""
    if value is None or isinstance(value, _BARE):
        return None if _not_finite(value) else value
    if hasattr(value, "to_json"):
        return plain(value.to_json())
    if is_dataclass(value):
        return field_values(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, frozenset):
        return sorted(value)
    return str(value) if isinstance(value, PurePath) else value


def _not_finite(value: Any) -> str | None:
    """Return what a number is that JSON has not; None of any other value."""
    if not isinstance(value, float) or math.isfinite(value):
        return None
    return UNDEFINED if math.isnan(value) else BELOW if value < 0 else BEYOND
