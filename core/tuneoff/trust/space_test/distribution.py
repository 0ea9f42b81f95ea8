"""Core's distribution of a dimension as the tests need it: places of values, and cells of places with their probability.

The place of a value of a continuous dimension is its distribution function, uniform in [0, 1] under core. That of a value of a
finite dimension is its rank, 0 .. size-1 in the order of the values; cells are intervals of ranks, single ones where they can be.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tuneoff.base.dimension import typed
from tuneoff.base.identity import canonical_json
from tuneoff.base.space import Constant, Dimension, Float, IntegerLog
from tuneoff.errors import TuneoffError

MOST_CELLS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Consecutive intervals of ranks: `starts` has the first rank of each, `shares` core's probability of each."""

    starts: tuple[int, ...]
    shares: tuple[float, ...]

    def index(self, rank: float) -> int:
        return bisect_right(self.starts, rank) - 1


def is_continuous(dimension: Dimension) -> bool:
    return dimension.cardinality is None


class ValuePlaces:
    """Finds the places of one dimension's values."""

    def __init__(self, dimension: Dimension) -> None:
        self._dimension = dimension
        self._known: dict[tuple[type, str], int | None] = {}

    def __call__(self, value: Any) -> float | None:
        """Return the place, or None where the value is none of the dimension's: 1 is not 1.0, to a seed they differ."""
        dimension = self._dimension
        if isinstance(dimension, Float) and is_continuous(dimension):
            return unit_of(dimension, value) if type(value) is float and dimension.contains(value) else None
        key = type(value), repr(value)
        if key not in self._known:
            self._known[key] = _rank_or_none(dimension, value)
        return self._known[key]


def unit_of(dimension: Float, value: float) -> float:
    """Return the value of the distribution function."""
    if dimension.log:
        return _log_ratio(value, dimension.low) / _log_ratio(dimension.high, dimension.low)
    return (value - dimension.low) / (dimension.high - dimension.low)


def _log_ratio(value: float, low: float) -> float:
    """Return ln(value / low), above 0 for every value above `low`, however near."""
    return math.log1p((value - low) / low) if value < 2 * low else math.log(value) - math.log(low)


def _rank_or_none(dimension: Dimension, value: Any) -> int | None:
    try:
        is_inside = dimension.contains(value) and canonical_json(value) == canonical_json(typed(dimension, value))
    except (TypeError, ValueError, TuneoffError):  # no JSON value
        return None
    return rank_of(dimension, value) if is_inside else None


def rank_of(dimension: Dimension, value: Any) -> int:
    """Return the rank of a value of a finite dimension; of a constant it is 0."""
    if isinstance(dimension, Constant | Float):
        return 0
    if isinstance(dimension, IntegerLog):
        return int(value) - dimension.low
    return dimension.index_of(value)


def size_of(dimension: Dimension) -> int:
    size = dimension.cardinality
    assert size is not None
    return size


def share_below(dimension: Dimension, rank: int) -> float:
    """Return the probability of all ranks below `rank`, which may be the size."""
    if isinstance(dimension, IntegerLog):
        low, high = dimension.continuous_bounds
        return math.log((low + rank) / low) / math.log(high / low)
    return rank / size_of(dimension)


def cells(dimension: Dimension, least_share: float, most: int = MOST_CELLS) -> Cells:
    """Return at most `most` cells, each with a probability of `least_share` or more: single values if they have that."""
    size = size_of(dimension)
    count = max(1, min(size, most, int(1.0 / least_share)))
    single = size <= count
    wanted = range(size) if single else sorted({_rank_at(dimension, index / count) for index in range(count)})
    starts = [0]
    for start in wanted[1:]:
        if share_below(dimension, start) - share_below(dimension, starts[-1]) >= least_share * (1 - 1e-9):
            starts.append(start)
    if len(starts) > 1 and 1.0 - share_below(dimension, starts[-1]) < least_share * (1 - 1e-9):
        starts.pop()
    edges = [*(share_below(dimension, start) for start in starts), 1.0]
    return Cells(starts=tuple(starts), shares=tuple(high - low for low, high in pairwise(edges)))


def end_cells(dimension: Dimension, least_share: float) -> Cells | None:
    """Return three cells: the fewest values at each end that have `least_share`, and all between; None where nothing is left."""
    size = size_of(dimension)
    first = _fewest(lambda rank: share_below(dimension, rank), size, least_share)
    last = size - _fewest(lambda rank: 1.0 - share_below(dimension, size - rank), size, least_share)
    if last <= first or share_below(dimension, last) - share_below(dimension, first) < least_share * (1 - 1e-9):
        return None
    low, high = share_below(dimension, first), share_below(dimension, last)
    return Cells(starts=(0, first, last), shares=(low, high - low, 1.0 - high))


def _fewest(share: Any, size: int, least: float) -> int:
    """Return the least count of ranks from an end whose probability is `least`; `share` grows with the count."""
    low, high = 1, size
    while low < high:
        middle = (low + high) // 2
        if share(middle) >= least * (1 - 1e-9):
            high = middle
        else:
            low = middle + 1
    return low


def _rank_at(dimension: Dimension, unit: float) -> int:
    """Return the least rank with all of `unit` below its end."""
    size = size_of(dimension)
    if isinstance(dimension, IntegerLog):
        return dimension.from_unit(unit) - dimension.low
    return min(int(unit * size), size - 1)
