"""Shares of runs."""

from __future__ import annotations

import math
from statistics import NormalDist

from tuneoff.judge.stats.interval import Interval


def wilson(successes: int, n: int, confidence: float) -> Interval:
    """Return the share of successes with Wilson's score interval.

    Raises:
        ValueError: `0 <= successes <= n` and `n >= 1` do not hold.

    Source: E. B. Wilson, J. Am. Stat. Assoc. 22 (1927) 209.
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"`0 <= successes <= n` and `n >= 1` must hold, but got {successes=}, {n=}")
    share = successes / n
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    wider = 1 + z * z / n
    centre = (share + z * z / (2 * n)) / wider
    half = z / wider * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else min(share, max(0.0, centre - half))
    high = 1.0 if successes == n else max(share, min(1.0, centre + half))
    return Interval(estimate=share, low=low, high=high, confidence=confidence, n=n, method="share, Wilson")
