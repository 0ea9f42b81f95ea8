"""The verdict on paired differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tuneoff.stats.interval import Interval

Relation = Literal["below", "above", "equivalent", "equivalent though different", "undecided"]
Estimator = Literal["hodges-lehmann", "median", "iqm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    relation: Relation
    interval: Interval
    p: float | None
    method: str


def judge(
    differences: Sequence[float],
    *,
    margin: float | None,
    alpha: float,
    grid_step: float = 0.0,
    rounding_scale: float = 0.0,
    key: tuple[str, ...] = (),
    estimator: Estimator = "hodges-lehmann",
) -> Judgement:
    raise NotImplementedError
