"""Shares of runs."""

from __future__ import annotations

import functools

from tuneoff.judge.stats.interval import Interval


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
