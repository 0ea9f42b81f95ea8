"""Medians with their intervals, and interleaved measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

CONFIDENCE = 0.95
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A quantile of a sample with the interval that covers the true one in at least 95 % of samples; None: too few values."""

    value: float
    low: float | None
    high: float | None
    count: int


def estimate(values: Sequence[float], at: float = 0.5) -> Estimate:
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
    ordered = sorted(values)
    position = at * (len(ordered) - 1)
    left = math.floor(position)
    right = min(left + 1, len(ordered) - 1)
    value = ordered[left] + (position - left) * (ordered[right] - ordered[left])
    low, high = _interval_ranks(len(ordered), at)
    return Estimate(
        value=value,
        low=ordered[low] if low is not None and high is not None else None,
        high=ordered[high] if low is not None and high is not None else None,
        count=len(ordered),
    )


def _interval_ranks(count: int, at: float) -> tuple[int | None, int | None]:
    """Return the ranks (from 0) of the interval's ends: P(Binomial(count, at) <= low) and P(>= high + 1) at most 2.5 % each."""
    tail = (1.0 - CONFIDENCE) / 2.0
    low: int | None = None
    below = 0.0
    for rank in range(count):
        below += math.comb(count, rank) * at**rank * (1.0 - at) ** (count - rank)
        if below > tail:
            break
        low = rank
    high: int | None = None
    above = 0.0
    for rank in range(count, 0, -1):
        above += math.comb(count, rank) * at**rank * (1.0 - at) ** (count - rank)
        if above > tail:
            break
        high = rank - 1
    return low, high


def ratios(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """Return the ratio of each pair."""
    return [numerator / denominator for numerator, denominator in zip(numerators, denominators, strict=True)]


def interleaved(sides: Mapping[str, Callable[[], T]], rounds: int) -> Iterator[tuple[int, str, T]]:
    """Measure every side once per round and yield (round, side, result); the order rotates, so that drift meets all alike."""
    names = list(sides)
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            yield number, name, sides[name]()


def slope(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Return the slope of the least-squares line, or None where all `xs` are equal."""
    if len(xs) < 2 or min(xs) == max(xs):
        return None
    mean_x, mean_y = math.fsum(xs) / len(xs), math.fsum(ys) / len(ys)
    over = math.fsum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return over / math.fsum((x - mean_x) ** 2 for x in xs)
