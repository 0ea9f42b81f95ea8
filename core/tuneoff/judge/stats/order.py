"""Intervals for the median by order statistics: they hold for any distribution, and an infinite value is just the greatest.

Source: T. P. Hettmansperger and S. J. Sheather, Statist. Probab. Lett. 4 (1986) 75 (interpolation).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def coverage(n: int, depth: int) -> float:
    """Return with which probability the `depth`-th smallest and greatest of n values enclose the median."""
    return 1.0 - 2 * sum(math.comb(n, count) for count in range(depth)) / (1 << n)


def depth(n: int, confidence: float) -> int:
    """Return the greatest depth that holds; 0 where not even the extremes do."""
    found = 0
    while 2 * (found + 1) <= n and coverage(n, found + 1) >= confidence - 1e-12:
        found += 1
    return found


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
