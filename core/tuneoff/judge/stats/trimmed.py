"""The trimmed mean and the interval of Yuen.

Sources: K. K. Yuen, Biometrika 61 (1974) 165; J. W. Tukey and D. H. McLaughlin, Sankhya A 25 (1963) 331.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

IQM_TRIM = 0.25  # of each end: what is left is the middle half


@dataclass(frozen=True, slots=True, kw_only=True)
class Trimmed:
    """Trimmed mean of each row, its standard error by winsorizing, and the degrees of freedom."""

    mean: Floats
    error: Floats
    freedom: int


def cut_off(n: int, trim: float) -> int:
    """Return how many values are cut off at each end."""
    return int(trim * n)


def trimmed(ordered: Floats, trim: float) -> Trimmed:
    """Return the trimmed means of sorted rows of finite values: (rows, n), n at least 2."""
    import numpy as np

    n = ordered.shape[1]
    cut = cut_off(n, trim)
    left = n - 2 * cut
    mean = ordered[:, cut : n - cut].mean(axis=1)
    winsorized = np.clip(ordered, ordered[:, cut : cut + 1], ordered[:, n - cut - 1 : n - cut])
    deviation = winsorized.std(axis=1, ddof=1)
    # A deviation that is rounding alone is none.
    deviation[deviation <= 1e-12 * np.abs(winsorized).max(axis=1)] = 0.0
    return Trimmed(mean=mean, error=deviation * math.sqrt((n - 1) / (left * (left - 1))), freedom=left - 1)


def yuen(ordered: Floats, confidence: float, trim: float) -> tuple[Floats, Floats]:
    """Return the bounds of Yuen's t-interval of sorted rows of finite values; without trimming it is Student's."""
    from scipy import stats

    found = trimmed(ordered, trim)
    half = float(stats.t.ppf((1 + confidence) / 2, found.freedom)) * found.error
    return found.mean - half, found.mean + half
