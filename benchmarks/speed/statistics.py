"""Medians with their intervals, and interleaved measurements: pyperf has no pairs within one run, and no interval of a median."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import linear_regression
from typing import TypeVar

import numpy
from scipy.stats import quantile_test

CONFIDENCE = 0.95
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedEstimate:
    """A quantile of a sample with the interval that covers the true one in at least 95 % of samples; None: too few values."""

    value: float
    low: float | None
    high: float | None
    count: int


def estimate(values: Sequence[float], at: float = 0.5) -> PairedEstimate:
    """Return the quantile `at` (0.5: the median) of independent values, with its distribution-free interval.

    The interval's ends are order statistics, chosen by the binomial distribution, each tail at most 2.5 %: for the median
    that takes at least 6 values. The quantile itself is interpolated between its neighbours.

    Raises:
        ValueError: no value, or `at` outside (0, 1).
    """
    if not values:
        raise ValueError("a quantile needs at least one value, but got none")
    if not 0.0 < at < 1.0:
        raise ValueError(f"`0 < at < 1` must hold, but got {at=}")
    value = float(numpy.quantile(values, at))
    interval = quantile_test(values, q=value, p=at).confidence_interval(CONFIDENCE)
    low, high = float(interval.low), float(interval.high)
    has_interval = math.isfinite(low) and math.isfinite(high)
    return PairedEstimate(value=value, low=low if has_interval else None, high=high if has_interval else None, count=len(values))


def ratios(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """Return the ratio of each pair."""
    return [numerator / denominator for numerator, denominator in zip(numerators, denominators, strict=True)]


def side_by_side(
    sides: Mapping[str, Callable[[], T]], rounds: int, say: Callable[[int, str, T], object] = lambda *_: None
) -> dict[str, list[T]]:
    """Measure every side once per round and return the results by side; the order rotates, so that drift meets all alike.

    `say` is called with round (from 0), side and result of each measurement.
    """
    names = list(sides)
    results: dict[str, list[T]] = {name: [] for name in names}
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            results[name].append(sides[name]())
            say(number, name, results[name][-1])
    return results


def slope(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Return the slope of the least-squares line, or None where all `xs` are equal."""
    return linear_regression(xs, ys).slope if len(set(xs)) > 1 else None
