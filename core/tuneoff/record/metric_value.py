"""A metric's value with what a reader must know about it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypedDict, Unpack

Kind = Literal["measured", "derived", "estimated", "declared"]
Metrics = Mapping[str, "MetricValue"]
_STRONGEST_FIRST: tuple[Kind, ...] = ("measured", "derived", "declared", "estimated")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricValue:
    """One number, its unit, where it comes from, and, where it is missing, why: never -1 or 0 for a missing value.

    `n_samples`: how many observations it rests on; `coverage`: share of the window, in [0, 1], that they cover.
    """

    value: float | None
    unit: str
    kind: Kind = "derived"
    source: str = "events"
    n_samples: int | None = None
    coverage: float | None = None
    reason_if_null: str | None = None

    def __post_init__(self) -> None:
        if self.value is None and not self.reason_if_null:
            raise ValueError(f"a missing value needs its reason, but got none (unit {self.unit!r})")
        if self.value is not None and self.reason_if_null is not None:
            raise ValueError(f"only a missing value has a reason, but got {self.value} with {self.reason_if_null!r}")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"a value must be finite, but got {self.value}")
        if self.coverage is not None and not 0 <= self.coverage <= 1:
            raise ValueError(f"`0 <= coverage <= 1` must hold, but got {self.coverage}")


def weakest(*kinds: Kind) -> Kind:
    """Return the kind of what is computed from values of these kinds: no product is better than its weakest factor.

    From the strongest: measured, derived (computed from what was measured), declared (a price, an intensity), estimated (a
    model). What is measured stays measured only on its own; whoever computes with it passes `derived` too.
    """
    return max(kinds, key=_STRONGEST_FIRST.index)


class Grounds(TypedDict, total=False):
    """What a value rests on: fields of a `MetricValue`."""

    kind: Kind
    source: str
    n_samples: int | None
    coverage: float | None


def metric_value(value: float, unit: str, **grounds: Unpack[Grounds]) -> MetricValue:
    """Return a value that is there; one that overflowed (by an absurd price or meter) is missing, and takes no other with it."""
    if not math.isfinite(value):
        return missing(unit, f"it is {value}: the values that it is computed from are too large", **grounds)
    return MetricValue(value=value, unit=unit, **grounds)


def missing(unit: str, reason: str, **grounds: Unpack[Grounds]) -> MetricValue:
    """Return a value that is not there, and why; it rests on no observations."""
    kind, source = grounds.get("kind", "derived"), grounds.get("source", "events")
    return MetricValue(value=None, unit=unit, kind=kind, source=source, reason_if_null=reason)


def metric_value_or(value: float | None, unit: str, reason: str, **grounds: Unpack[Grounds]) -> MetricValue:
    """Return a value, or null with `reason` where it is None."""
    return missing(unit, reason, **grounds) if value is None else metric_value(value, unit, **grounds)


def milliseconds(nanoseconds: int | None, reason: str, **grounds: Unpack[Grounds]) -> MetricValue:
    """Return a duration in ms, or null with `reason`."""
    return metric_value_or(None if nanoseconds is None else nanoseconds / 1e6, "ms", reason, **grounds)
