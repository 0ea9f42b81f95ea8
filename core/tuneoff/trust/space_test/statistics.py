"""The tests: each gives a p-value under core's distribution. Needs scipy, which is imported where it is used.

The place of a value of a continuous dimension is its distribution function, uniform in [0, 1] under core. That of a value of a
finite dimension is its rank, 0 .. size-1 in the order of the values; cells are intervals of ranks, single ones where they can be.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any, Literal

from tuneoff.base.dimension import typed
from tuneoff.base.identity import canonical_json
from tuneoff.base.space import Constant, Dimension, Float, IntegerLog
from tuneoff.errors import TuneoffError

MOST_CELLS = 256
FALSE_DISCOVERY_RATE = 0.02
LEAST_EXPECTED = 5  # draws in a cell; cells with fewer are merged
END_SHARE, LEAST_AT_END = 0.01, 10  # what counts as an end: 1 % of the draws, or as many values as 10 draws need
FEWEST_WITH_ENDS = 4  # values of a dimension whose ends are tested apart from the rest
MOST_BINS = 7  # of a dimension in a test of a pair

Kind = Literal["distribution", "ends", "independence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Consecutive intervals of ranks: `starts` has the first rank of each, `shares` core's probability of each."""

    starts: tuple[int, ...]
    shares: tuple[float, ...]

    def index(self, rank: float) -> int:
        return bisect_right(self.starts, rank) - 1

    def counts(self, ranks: Sequence[float]) -> list[int]:
        """Return how many of the ranks lie in each."""
        count = Counter(map(self.index, ranks))
        return [count[index] for index in range(len(self.starts))]


def is_continuous(dimension: Dimension) -> bool:
    return dimension.cardinality is None


class ValuePlaces:
    """Finds the places of one dimension's values."""

    def __init__(self, dimension: Dimension) -> None:
        self._dimension = dimension
        self._ranks: dict[tuple[type, str], int | None] = {}

    def __call__(self, value: Any) -> float | None:
        """Return the place, or None where the value is none of the dimension's: 1 is not 1.0, to a seed they differ."""
        dimension = self._dimension
        if isinstance(dimension, Float) and is_continuous(dimension):
            return unit_of(dimension, value) if type(value) is float and dimension.contains(value) else None
        key = type(value), repr(value)
        if key not in self._ranks:
            try:
                is_inside = dimension.contains(value) and canonical_json(value) == canonical_json(typed(dimension, value))
            except (TypeError, ValueError, TuneoffError):  # no JSON value
                is_inside = False
            if not is_inside:
                self._ranks[key] = None
            elif isinstance(dimension, Constant | Float):
                self._ranks[key] = 0
            elif isinstance(dimension, IntegerLog):
                self._ranks[key] = int(value) - dimension.low
            else:
                self._ranks[key] = dimension.index_of(value)
        return self._ranks[key]


def unit_of(dimension: Float, value: float) -> float:
    """Return the value of the distribution function."""
    if dimension.log:
        return _log_ratio(value, dimension.low) / _log_ratio(dimension.high, dimension.low)
    return (value - dimension.low) / (dimension.high - dimension.low)


def _log_ratio(value: float, low: float) -> float:
    """Return ln(value / low), above 0 for every value above `low`, however near."""
    return math.log1p((value - low) / low) if value < 2 * low else math.log(value) - math.log(low)


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
    units = [index / count for index in range(count)]
    if size <= count:
        wanted = list(range(size))
    elif isinstance(dimension, IntegerLog):  # the least rank with all of a unit below its end
        wanted = sorted({dimension.from_unit(unit) - dimension.low for unit in units})
    else:
        wanted = sorted({min(int(unit * size), size - 1) for unit in units})
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
    size, enough = size_of(dimension), least_share * (1 - 1e-9)
    first = 1 + bisect_left(range(1, size), enough, key=lambda rank: share_below(dimension, rank))
    last = size - 1 - bisect_left(range(1, size), enough, key=lambda count: 1.0 - share_below(dimension, size - count))
    low, high = share_below(dimension, first), share_below(dimension, last)
    if last <= first or high - low < enough:
        return None
    return Cells(starts=(0, first, last), shares=(low, high - low, 1.0 - high))


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """One test: of a dimension, or of a pair; `p` is None where it could not be made, and `text` says why."""

    kind: Kind
    method: str = "chi2"  # or "KS"
    names: tuple[str, ...]
    statistic: float | None = None
    p: float | None = None
    text: str = ""
    ends: tuple[tuple[int, float], tuple[int, float]] | None = None  # of `ends`: draws at either end, and how many are expected


def rejection_threshold(p_values: Sequence[float], rate: float = FALSE_DISCOVERY_RATE) -> float:
    """Return the greatest p-value that Benjamini and Hochberg's rule rejects at a false discovery rate; 0 where none is.

    Where all hypotheses hold, the chance that anything is rejected is at most `rate` for independent or positively dependent
    tests.
    """
    from scipy import stats

    adjusted = stats.false_discovery_control(p_values) if p_values else ()
    return max((p for p, q in zip(p_values, adjusted, strict=True) if q <= rate), default=0.0)


def distribution_test(name: str, dimension: Dimension, places: Sequence[float]) -> Test:
    """Compare all places with core's distribution: KS for a continuous dimension, chi-squared of counts for a finite one."""
    if is_continuous(dimension):
        from scipy import stats

        return _test("distribution", (name,), stats.kstest(places, "uniform"), method="KS")
    into = cells(dimension, LEAST_EXPECTED / len(places))
    return _chi_squared("distribution", name, into.counts(places), into.shares)


def ends_test(name: str, dimension: Dimension, places: Sequence[float]) -> Test | None:
    """Compare the counts at both ends, and of all between, with core's distribution; None for fewer than four values.

    An end is reached with the probability that it has: neither starved nor preferred. Of a wide range, an end is as many
    values as have one draw in a hundred.
    """
    share = max(END_SHARE, LEAST_AT_END / len(places))
    if is_continuous(dimension):
        counts = [sum(unit <= share for unit in places), 0, sum(unit >= 1.0 - share for unit in places)]
        counts[1] = len(places) - sum(counts)
        return _chi_squared("ends", name, counts, (share, 1.0 - 2 * share, share))
    if size_of(dimension) < FEWEST_WITH_ENDS:
        return None
    into = end_cells(dimension, share)
    return None if into is None else _chi_squared("ends", name, into.counts(places), into.shares)


def independence_tests(dimensions: Mapping[str, Dimension], columns: Mapping[str, Sequence[float]]) -> list[Test]:
    """Test each pair of dimensions: chi-squared of a contingency table, whose margins are those of the draws themselves.

    So a dimension with a wrong distribution of its own is not rejected here as well.
    """
    import numpy
    from scipy import stats

    codes = {}  # of each dimension a small number for each value: so few that each pair of numbers is expected often enough
    for name, dimension in dimensions.items():
        places = columns[name]
        most = max(2, min(MOST_BINS, int((len(places) / (2 * LEAST_EXPECTED)) ** 0.5)))
        if is_continuous(dimension):
            numbers = [min(int(unit * most), most - 1) for unit in places]
        else:
            into = cells(dimension, 0.5 / most, most)
            numbers = [into.index(rank) for rank in places]
        codes[name] = numpy.asarray(numbers)

    tests = []
    for names in combinations(codes, 2):
        first, second = (codes[name] for name in names)
        shape = (int(first.max()) + 1, int(second.max()) + 1)
        table = numpy.bincount(first * shape[1] + second, minlength=shape[0] * shape[1]).reshape(shape)
        table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        if min(table.shape) < 2:
            text = "one of the two never varies"
            tests.append(Test(kind="independence", names=names, text=text))
        else:
            tests.append(_test("independence", names, stats.chi2_contingency(table, correction=False)))
    return tests


def _chi_squared(kind: Kind, name: str, counts: Sequence[int], shares: Sequence[float]) -> Test:
    from scipy import stats

    total = sum(counts)
    if len(counts) < 2:
        return Test(kind=kind, names=(name,), text=f"{total} draws are too few for two cells of {LEAST_EXPECTED}")
    test = _test(kind, (name,), stats.chisquare(counts, [total * share for share in shares]))
    return test if kind != "ends" else replace(test, ends=((counts[0], total * shares[0]), (counts[-1], total * shares[-1])))


def _test(kind: Kind, names: tuple[str, ...], result: Any, method: str = "chi2") -> Test:
    """Return the test of a result of scipy's."""
    return Test(kind=kind, method=method, names=names, statistic=float(result.statistic), p=float(result.pvalue))
