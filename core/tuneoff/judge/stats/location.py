"""The median of the values of one group with an interval that holds at small n.

The choice rests on simulation: docs/statistics.md, `python -m benchmarks.simulation`. A failed run is +inf (or -inf, where
greater is better): it has the worst rank, and where failures reach the estimate or may reach it, the bound on their side is
infinite.

Of failures two opposite ones cancel. The intervals of order statistics hold for any distribution.
Source: T. P. Hettmansperger and S. J. Sheather, Statist. Probab. Lett. 4 (1986) 75 (interpolation).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def checked(values: Sequence[float], what: str = "values") -> Floats:
    """Return the values as an array of one dimension.

    Raises:
        ValueError: there is none, or one is not a number.
    """
    import numpy as np

    array = np.asarray(values, dtype=np.float64)  # (n,)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"`{what}` must hold at least one number, but got {list(values)!r}")
    if np.isnan(array).any():
        raise ValueError(f"`{what}` must hold no NaN: leave out what is missing, give inf for a failure; got {list(values)!r}")
    return array


def middle(values: Sequence[float]) -> float:
    """Return the median of at least one value: of an even number the mean of the two in the middle, of opposite infinities 0."""
    ordered = sorted(values)
    a, b = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    if math.isinf(a) and math.isinf(b) and a != b:
        return 0.0
    return a / 2 + b / 2 if math.isinf(a) or math.isinf(b) else (a + b) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate of `n` values and its two-sided interval of `confidence`; a bound that nothing holds is ±inf.

    `method` says in a few words which estimate and which interval it is: "median, sign test".
    """

    estimate: float
    low: float
    high: float
    confidence: float
    n: int
    method: str

    def __post_init__(self) -> None:
        if not self.low <= self.estimate <= self.high:
            raise ValueError(f"`low <= estimate <= high` must hold, but got {self.low}, {self.estimate}, {self.high}")

    def over(self, divisor: float) -> Interval:
        """Return it in another unit: everything divided by a number above 0."""
        return replace(self, estimate=self.estimate / divisor, low=self.low / divisor, high=self.high / divisor)

    def __neg__(self) -> Interval:
        """Return the interval of the opposite difference."""
        return replace(self, estimate=-self.estimate, low=-self.high, high=-self.low)


def median(values: Sequence[float], confidence: float, *, grid_step: float = 0.0) -> Interval:
    """Return the median with the interval of its order statistics, interpolated to the confidence.

    Too few values for that (5 at 95 %): Student's t-interval. The bounds are at least half a grid step away.

    Raises:
        ValueError: there is no value, or one is NaN.
    """
    if len(values) == 1 and not math.isnan(values[0]):  # without NumPy, whose import a command of one run need not wait for
        bounds = {"estimate": float(values[0]), "low": -math.inf, "high": math.inf}
        return Interval(**bounds, confidence=confidence, n=1, method="median of one value: no interval")
    import numpy as np

    ordered = np.sort(checked(values))
    n = ordered.size
    estimate = middle(ordered.tolist())
    if depth(n, confidence) == 0:
        # On the side of failures the bound is infinite: they may well be half of the next few. The other bound takes the failures
        # as no worse than the worst success.
        low, high, method = float(ordered[0]), float(ordered[-1]), "median, Student's t"
        finite = ordered[np.isfinite(ordered)]
        if finite.size:
            lows, highs = students_t(np.clip(ordered, finite[0], finite[-1])[None, :], confidence)
            low = float(lows[0]) if math.isfinite(low) else -math.inf
            high = float(highs[0]) if math.isfinite(high) else math.inf
    else:
        lows, highs = interpolated(ordered[None, :], confidence)
        low, high, method = float(lows[0]), float(highs[0]), "median, interpolated order statistics"
    low, high = min(low, estimate - grid_step / 2), max(high, estimate + grid_step / 2)
    return Interval(estimate=estimate, low=low, high=high, confidence=confidence, n=n, method=method)


def students_t(rows: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return the bounds of Student's t-interval of rows of finite values: (rows, n), n at least 2."""
    import numpy as np

    n = rows.shape[1]
    mean, deviation = rows.mean(axis=1), rows.std(axis=1, ddof=1)
    # A deviation that is rounding alone is none.
    deviation[deviation <= 1e-12 * np.abs(rows).max(axis=1)] = 0.0
    half = students_t_quantile((1 + confidence) / 2, n - 1) * deviation / math.sqrt(n)
    return mean - half, mean + half


@functools.cache
def students_t_quantile(share: float, degrees: int) -> float:
    """Return the quantile of Student's t-distribution."""
    from scipy import stats

    return float(stats.t.ppf(share, degrees))


@functools.cache
def wilson(successes: int, n: int, confidence: float) -> Interval:
    """Return the share of successes with Wilson's score interval.

    Raises:
        ValueError: `0 <= successes <= n` and `n >= 1` do not hold.

    Source: E. B. Wilson, J. Am. Stat. Assoc. 22 (1927) 209.
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"`0 <= successes <= n` and `n >= 1` must hold, but got {successes=}, {n=}")
    from scipy import stats

    low, high = stats.binomtest(successes, n).proportion_ci(confidence, method="wilson")
    return Interval(estimate=successes / n, low=float(low), high=float(high), confidence=confidence, n=n, method="share, Wilson")


def coverage(n: int, depth: int) -> float:
    """Return with which probability the `depth`-th smallest and greatest of n values enclose the median."""
    return 1.0 - 2 * sum(math.comb(n, count) for count in range(depth)) / (1 << n)


def depth(n: int, confidence: float) -> int:
    """Return the greatest depth that holds; 0 where not even the extremes do."""
    deepest = 0
    while 2 * (deepest + 1) <= n and coverage(n, deepest + 1) >= confidence - 1e-12:
        deepest += 1
    return deepest


def interpolated(ordered: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return the bounds for the medians of sorted rows (rows, n), between the depth that holds and the next."""
    import numpy as np

    n = ordered.shape[1]
    outer = depth(n, confidence)
    if outer == 0:
        infinite = np.full(len(ordered), np.inf)
        return -infinite, infinite
    if 2 * (outer + 1) > n:  # there is no next
        return ordered[:, outer - 1].copy(), ordered[:, n - outer].copy()
    wide, narrow = coverage(n, outer), coverage(n, outer + 1)
    part = (wide - confidence) / (wide - narrow)
    weight = (n - outer) * part / (outer + (n - 2 * outer) * part)
    return _between(ordered[:, outer - 1], ordered[:, outer], weight), _between(
        ordered[:, n - outer], ordered[:, n - outer - 1], weight
    )


def _between(outer: Floats, inner: Floats, weight: float) -> Floats:
    """Return the value at `weight` from outer to inner; where the outer one is infinite, that: nothing nearer is known."""
    import numpy as np

    finite = np.isfinite(outer) & np.isfinite(inner)
    return np.where(finite, np.where(finite, outer, 0.0) * (1 - weight) + np.where(finite, inner, 0.0) * weight, outer)
