"""Wilcoxon's signed-rank test, exact, and the interval of Hodges and Lehmann that inverts it.

The *Walsh averages* of n differences are the means of all n(n+1)/2 pairs, each with itself too. Their median is the estimate; the
statistic of the test is how many of them are below 0. So the k-th smallest and the k-th greatest are an interval for the centre
of symmetry, with k from the exact null distribution. The differences of two equal frameworks are symmetric about 0, whatever
their distribution: one − other is as likely as other − one.

- Ties without a grid count against the claim: the interval is closed. So it holds for discrete data as well.
- On a grid (accuracies of 360 images) equal Walsh averages stand for values spread evenly over their grid cell. At 0 that is
  Wilcoxon's mid-rank, by which half of the ties count. Where the exact test of these very ranks (signs flipped, zeros after
  Pratt) is not below alpha, the interval is extended to 0.
- An infinite difference (exactly one of the two failed) has the greatest rank. Two opposite ones cancel to nothing known: their
  average counts against the claim on both sides.

Sources: F. Wilcoxon, Biometrics Bull. 1 (1945) 80; J. L. Hodges and E. L. Lehmann, Ann. Math. Statist. 34 (1963) 598;
J. W. Pratt, J. Am. Stat. Assoc. 54 (1959) 655.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tuneoff.judge.stats.location import Floats

EQUAL = 1e-9  # relative; probabilities that are equal but for rounding


class Bounds(NamedTuple):
    """Estimate, interval and two-sided p of each row; p is at most alpha exactly where the interval excludes 0."""

    estimate: Floats  # (rows,)
    low: Floats
    high: Floats
    p: Floats


@lru_cache(maxsize=256)
def null_distribution(n: int) -> Floats:
    """Return P(T <= t) for t = 0, 1, ..., n(n+1)/2: the sum of the ranks of the positive differences, without ties."""
    import numpy as np

    return np.asarray(np.minimum(np.cumsum(_mass(range(1, n + 1))), 1.0))


def _mass(ranks: Sequence[int]) -> Floats:
    """Return P(T = t) for t = 0, 1, ..., the sum of all: T is the sum of the ranks whose fair coin falls on its head."""
    import numpy as np

    mass = np.zeros(sum(ranks) + 1)
    mass[0] = 1.0
    for rank in ranks:
        moved = mass[:-rank].copy()
        mass *= 0.5
        mass[rank:] += 0.5 * moved
    return mass


def depth(n: int, alpha: float) -> int:
    """Return k: the k-th smallest and k-th greatest Walsh averages bound the interval; 0 where n is too small for alpha."""
    import numpy as np

    return int(np.count_nonzero(2 * null_distribution(n) <= alpha * (1 + EQUAL)))


def least_n(alpha: float) -> int:
    """Return the smallest number of differences of which any claim can be made: 2 / 2**n <= alpha."""
    n = 1
    while 2.0 ** (1 - n) > alpha * (1 + EQUAL):
        n += 1
    return n


def bounds(rows: Floats, alpha: float, grid_step: float = 0.0, tolerance: float = 0.0) -> Bounds:
    """Return the intervals of confidence 1 − alpha of many samples.

    Args:
        rows: (rows, n). With a grid step: whole numbers, counted in steps; the result is in steps too.
        grid_step: 0 where the differences are on no grid.
        tolerance: a Walsh average of at most this size is 0: what is left of equal values by rounding.
    """
    import numpy as np

    n = rows.shape[1]
    first, second = np.triu_indices(n)
    with np.errstate(invalid="ignore"):  # inf − inf: nothing known
        walsh = (rows[:, first] + rows[:, second]) / 2  # (rows, pairs)
    walsh[np.abs(walsh) <= tolerance] = 0.0
    unknown = np.isnan(walsh)
    middle = np.sort(np.where(unknown, 0.0, walsh), axis=1)
    below = above = middle
    if unknown.any():
        below = np.sort(np.where(unknown, -np.inf, walsh), axis=1)
        above = np.sort(np.where(unknown, np.inf, walsh), axis=1)
    pairs, k = len(first), depth(n, alpha)
    estimate = _middle(middle)
    at_most, at_least = (below <= 0).sum(axis=1), (above >= 0).sum(axis=1)
    if grid_step > 0:
        at_most = at_most - (below == 0).sum(axis=1) / 2
        at_least = at_least - (above == 0).sum(axis=1) / 2
    against = np.ceil(np.minimum(at_most, at_least)).astype(int)  # a half that is left over on a grid is not the next smaller p
    p = np.minimum(1.0, 2 * null_distribution(n)[against])
    if k == 0:
        infinite = np.full(len(rows), np.inf)
        return Bounds(estimate, -infinite, infinite, p)
    low, high = below[:, k - 1].copy(), above[:, pairs - k].copy()
    if grid_step > 0:
        low = _spread(below, low, k)
        high = -_spread(-above[:, ::-1], -high, k)
        low, high = np.minimum(low, estimate), np.maximum(high, estimate)
        for row in np.flatnonzero((low > 0) | (high < 0)):
            p[row] = max(p[row], exact_p(rows[row]))
            if p[row] > alpha * (1 + EQUAL):
                low[row], high[row] = min(low[row], 0.0), max(high[row], 0.0)
    return Bounds(estimate, low, high, p)


def exact_p(differences: Floats) -> float:
    """Return the two-sided p of all 2**n ways to flip the signs, given the sizes: ties have mid-ranks, zeros their ranks."""
    import numpy as np
    from scipy import stats

    doubled = np.round(2 * stats.rankdata(np.abs(differences))).astype(int)  # mid-ranks are halves
    least = min(int(doubled[differences > 0].sum()), int(doubled[differences < 0].sum()))
    return float(min(1.0, 2 * _mass(doubled[differences != 0].tolist())[: least + 1].sum()))


def _spread(ordered: Floats, bound: Floats, k: int) -> Floats:
    """Return the k-th smallest where equal values, half a step apart from the next, stand for evenly spread ones."""
    import numpy as np

    fewer = (ordered < bound[:, None]).sum(axis=1)
    equal = (ordered == bound[:, None]).sum(axis=1)
    position = (k - 0.5 - fewer) / equal  # in (0, 1)
    return np.where(np.isfinite(bound), bound + (position - 0.5) / 2, bound)


def _middle(ordered: Floats) -> Floats:
    """Return the medians of sorted rows, of opposite infinite values 0."""
    import numpy as np

    size = ordered.shape[1]
    low, high = ordered[:, (size - 1) // 2], ordered[:, size // 2]
    opposite = np.isinf(low) & np.isinf(high) & (low != high)
    return np.asarray(np.where(opposite, 0.0, low / 2 + np.where(opposite, 0.0, high) / 2))
