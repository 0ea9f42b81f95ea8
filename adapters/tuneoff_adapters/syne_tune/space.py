"""Core's native dimensions in Syne Tune's types; each draws exactly (`lograndint`, `ordinal` and the `q` types do not)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tuneoff.experiment.translation import Native, NativeFloat, NativeIndex


def domains(native: Mapping[str, Native]) -> dict[str, Any]:
    """Return Syne Tune's configuration space; imports Syne Tune."""
    return {name: _domain(kind) for name, kind in native.items()}


def _domain(kind: Native) -> Any:
    from syne_tune.config_space import choice, loguniform, randint, uniform

    if isinstance(kind, NativeFloat):
        return loguniform(kind.low, kind.high) if kind.log else uniform(kind.low, kind.high)
    if isinstance(kind, NativeIndex):
        return randint(0, kind.size - 1) if kind.ordered else choice(list(range(kind.size)))  # both ends included
    return loguniform(*kind.bounds)
