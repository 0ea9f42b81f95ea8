"""Benjamini and Hochberg's rule: of many p-values, those that are rejected at a false discovery rate."""

from __future__ import annotations

from collections.abc import Sequence

FALSE_DISCOVERY_RATE = 0.02


def rejection_threshold(p_values: Sequence[float], rate: float = FALSE_DISCOVERY_RATE) -> float:
    """Return the greatest p-value that is rejected: the greatest p(k) <= k * rate / m; 0 where none is.

    Where all hypotheses hold, the chance that anything is rejected is at most `rate` for independent or positively dependent
    tests.

    Source: Benjamini and Hochberg, J. R. Stat. Soc. B 57 (1995) 289.
    """
    threshold = 0.0
    count = len(p_values)
    for position, value in enumerate(sorted(p_values), 1):
        if value <= position * rate / count:
            threshold = value
    return threshold
