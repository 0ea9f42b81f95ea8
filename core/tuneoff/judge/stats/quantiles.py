"""Quantiles that many intervals of one size share."""

from __future__ import annotations

import functools


@functools.cache
def students_t_quantile(share: float, degrees: int) -> float:
    """Return the quantile of Student's t-distribution."""
    from scipy import stats

    return float(stats.t.ppf(share, degrees))
