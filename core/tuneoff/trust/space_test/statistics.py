"""The tests: each gives a p-value under core's distribution. Needs scipy, which is imported where it is used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

from tuneoff.base.space import Dimension
from tuneoff.trust.space_test.distribution import Cells, cells, end_cells, is_continuous, size_of

FALSE_DISCOVERY_RATE = 0.02
LEAST_EXPECTED = 5  # draws in a cell; cells with fewer are merged
END_SHARE, LEAST_AT_END = 0.01, 10  # what counts as an end: 1 % of the draws, or as many values as 10 draws need
FEWEST_WITH_ENDS = 4  # values of a dimension whose ends are tested apart from the rest
MOST_BINS = 7  # of a dimension in a test of a pair

Kind = Literal["distribution", "ends", "independence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """One test: of a dimension, or of a pair; `p` is None where it could not be made, and `text` says why."""

    kind: Kind
    method: str  # "chi2" or "KS"
    names: tuple[str, ...]
    statistic: float | None
    p: float | None
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

        result = stats.kstest(places, "uniform")
        return _test("distribution", "KS", (name,), float(result.statistic), float(result.pvalue))
    into = cells(dimension, LEAST_EXPECTED / len(places))
    return _goodness("distribution", name, places, into)


def ends_test(name: str, dimension: Dimension, places: Sequence[float]) -> Test | None:
    """Compare the counts at both ends, and of all between, with core's distribution; None for fewer than four values.

    An end is reached with the probability that it has: neither starved nor preferred. Of a wide range, an end is as many
    values as have one draw in a hundred.
    """
    share = max(END_SHARE, LEAST_AT_END / len(places))
    if is_continuous(dimension):
        counts = [sum(unit <= share for unit in places), 0, sum(unit >= 1.0 - share for unit in places)]
        counts[1] = len(places) - sum(counts)
        return _chi_squared("ends", (name,), counts, (share, 1.0 - 2 * share, share))
    if size_of(dimension) < FEWEST_WITH_ENDS:
        return None
    into = end_cells(dimension, share)
    return None if into is None else _goodness("ends", name, places, into)


def independence_tests(dimensions: Mapping[str, Dimension], columns: Mapping[str, Sequence[float]]) -> list[Test]:
    """Test each pair of dimensions: chi-squared of a contingency table, whose margins are those of the draws themselves.

    So a dimension with a wrong distribution of its own is not rejected here as well.
    """
    import numpy

    codes = {name: numpy.asarray(_bins(dimension, columns[name])) for name, dimension in dimensions.items()}
    return [_independence(one, other, codes[one], codes[other]) for one, other in combinations(codes, 2)]


def _bins(dimension: Dimension, places: Sequence[float]) -> list[int]:
    """Return a small number for each value: so few that each pair of numbers is expected often enough."""
    most = max(2, min(MOST_BINS, int((len(places) / (2 * LEAST_EXPECTED)) ** 0.5)))
    if is_continuous(dimension):
        return [min(int(unit * most), most - 1) for unit in places]
    into = cells(dimension, 0.5 / most, most)
    return [into.index(rank) for rank in places]


def _independence(one: str, other: str, codes: Any, others: Any) -> Test:
    import numpy
    from scipy import stats

    names = (one, other)
    rows, columns = int(codes.max()) + 1, int(others.max()) + 1
    table = numpy.bincount(codes * columns + others, minlength=rows * columns).reshape(rows, columns)  # (rows, columns)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    if min(table.shape) < 2:
        return Test(kind="independence", method="chi2", names=names, statistic=None, p=None, text="one of the two never varies")
    result = stats.chi2_contingency(table, correction=False)
    return _test("independence", "chi2", names, float(result.statistic), float(result.pvalue))


def _goodness(kind: Kind, name: str, places: Sequence[float], into: Cells) -> Test:
    counts = Counter(into.index(rank) for rank in places)
    return _chi_squared(kind, (name,), [counts[index] for index in range(len(into.shares))], into.shares)


def _chi_squared(kind: Kind, names: tuple[str, ...], counts: Sequence[int], shares: Sequence[float]) -> Test:
    from scipy import stats

    if len(counts) < 2:
        text = f"{sum(counts)} draws are too few for two cells of {LEAST_EXPECTED}"
        return Test(kind=kind, method="chi2", names=names, statistic=None, p=None, text=text)
    total = sum(counts)
    result = stats.chisquare(counts, [total * share for share in shares])
    test = _test(kind, "chi2", names, float(result.statistic), float(result.pvalue))
    if kind != "ends":
        return test
    return replace(test, ends=((counts[0], total * shares[0]), (counts[-1], total * shares[-1])))


def _test(kind: Kind, method: str, names: tuple[str, ...], statistic: float, p: float) -> Test:
    return Test(kind=kind, method=method, names=names, statistic=statistic, p=p)
