"""The sign-flip test of a weighted mean of paired differences, and the interval that inverts it.

Of two equal frameworks one − other is as likely as other − one, whatever their distribution. So flipping the signs of what is
exchanged together, a *unit*, gives all that was as likely as the data. With x = d − centre, a flip of the units S takes twice
their sum from that of all: what is left is at least as great where the mean of S is at most the centre. So the test counts the
means of subsets on each side of the centre, and its interval has the k-th smallest and the k-th greatest of them for bounds, as
that of Hodges and Lehmann has Walsh averages. Up to `MOST_EXACT` units all subsets are taken, else `DRAWS` drawn ones.

- A mean of exactly the centre counts against the claim on both sides, so identical data never win.
- An infinite difference (exactly one of the two failed) counts as the greatest finite one of the sample, or `least` where that is
  greater: signs decide how often it flips, so the test stays exact.

Sources: R. A. Fisher, The Design of Experiments (1935), section 21; J. A. Hartigan, J. Am. Stat. Assoc. 64 (1969) 1303;
for drawn flips B. Phipson and G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 9 (2010) 39.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from tuneoff.judge.stats.location import Interval, checked
from tuneoff.judge.stats.paired import rounding
from tuneoff.judge.stats.signed_rank import EQUAL

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tuneoff.judge.stats.location import Floats

MOST_EXACT = 13  # units: 8 191 subsets that are not empty
DRAWS = 10_000


class SignFlip(NamedTuple):
    """The weighted mean of the differences with the interval of the test, its two-sided p, and how many units were flipped."""

    interval: Interval  # n: the units
    p: float


def least_p(units: int) -> float:
    """Return the smallest p that so many units can have."""
    return 2.0 / (1 + (2**units - 1 if units <= MOST_EXACT else DRAWS))


def sign_flip(
    differences: Sequence[float],
    weights: Sequence[float],
    units: Sequence[Hashable],
    alpha: float,
    *,
    least: float = 0.0,
    rounding_scale: float = 0.0,
    half_step: float = 0.0,
) -> SignFlip:
    """Test that the differences are symmetric about 0, and return the interval of their centre at confidence 1 − alpha.

    Args:
        differences: one − other; ±inf where exactly one of the two failed, 0 where both did.
        weights: above 0, of any sum.
        units: what flips together; differences of one unit are never taken for independent.
        least: what a failure counts at least.
        rounding_scale: the greatest size of what was subtracted; what is rounding of it alone is no difference.
        half_step: how far the mean may be off, as its values come in steps. The interval is so much wider to each side, and p is
            the greatest of all centres within it.

    Raises:
        ValueError: there is no difference, one is NaN, or alpha is out of range.
    """
    import numpy as np

    if not 0 < alpha < 1:
        raise ValueError(f"`0 < alpha < 1` must hold, but got {alpha}")
    array = checked(differences, "differences")
    tolerance = rounding(array, rounding_scale)
    size = max(least, float(np.abs(array[np.isfinite(array)]).max(initial=0.0)))
    has_size = size > tolerance or bool(np.isfinite(array).all())
    values = np.clip(array, -size, size) if has_size else np.sign(array)  # nothing but failures: their signs alone
    totals = _by_unit(values, np.asarray(weights, dtype=np.float64), units)  # (2, units)
    subsets = _subsets(totals.shape[1])  # (bytes, subsets)
    of_subsets = np.zeros((2, subsets.shape[1]))
    for byte, codes in enumerate(subsets):  # looked up by eight units at once
        part = totals[:, 8 * byte : 8 * byte + 8]
        members = np.arange(2 ** part.shape[1])[:, None] >> np.arange(part.shape[1]) & 1
        of_subsets += np.take(part @ members.T, codes, axis=1)
    sums, masses = np.append(of_subsets, totals.sum(axis=1)[:, None], axis=1)
    means = sums / masses
    means[np.abs(means) <= tolerance] = 0.0
    if not has_size:
        means = np.where(means == 0, 0.0, np.copysign(np.inf, means))
    means, estimate = means[:-1], float(means[-1])
    count = means.size + 1  # the empty subset: the data as they are
    near = half_step + tolerance
    p = min(1.0, 2 * (1 + min(int((means <= near).sum()), int((means >= -near).sum()))) / count)
    low, high = -math.inf, math.inf
    if k := math.floor(alpha * count / 2 * (1 + EQUAL)):
        ordered = np.partition(means, (k - 1, means.size - k))
        low, high = min(estimate, float(ordered[k - 1])) - half_step, max(estimate, float(ordered[means.size - k])) + half_step
    n = totals.shape[1]
    method = f"mean, {'all' if n <= MOST_EXACT else DRAWS} sign flips"
    return SignFlip(Interval(estimate=estimate, low=low, high=high, confidence=1 - alpha, n=n, method=method), p)


def _by_unit(values: Floats, weights: Floats, units: Sequence[Hashable]) -> Floats:
    """Return the weighted sum and the weight of each unit, in an order that is not that of the file."""
    import numpy as np

    positions = {unit: position for position, unit in enumerate(sorted(set(units), key=repr))}
    index = np.array([positions[unit] for unit in units])
    return np.array([np.bincount(index, weights * values), np.bincount(index, weights)])


@lru_cache(maxsize=32)
def _subsets(n: int) -> NDArray[np.int64]:
    """Return which of n units are in each subset (bytes, subsets), a bit per unit, the empty one left out: all, or drawn ones."""
    import numpy as np

    firsts = range(0, n, 8)
    if n <= MOST_EXACT:
        return np.array([np.arange(1, 2**n) >> first & 255 for first in firsts])
    draw = generator("sign flips", str(n))
    drawn = np.array([draw.integers(0, 2 ** min(8, n - first), DRAWS) for first in firsts])
    return np.asarray(drawn[:, drawn.any(axis=0)])


def generator(*key: str) -> np.random.Generator:
    """Return a generator of its own for this key (pair, question, scope, ...); no global state is read or changed."""
    import numpy as np

    # The length before each part tells ("ab", "c") from ("a", "bc").
    text = "".join(f"{len(part)}:{part}" for part in key)
    return np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest(), "big"))
