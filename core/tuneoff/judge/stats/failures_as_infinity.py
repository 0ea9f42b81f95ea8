"""Arithmetic with failures: +inf is worse than any value, -inf better than any, and two opposite ones cancel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NEGLIGIBLE = 1e-12  # a weight


def checked(values: Sequence[float], what: str = "values") -> NDArray[np.float64]:
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


def midpoint(one: float, other: float) -> float:
    """Return the mean of two values; of opposite infinite ones 0, the middle by symmetry."""
    if math.isinf(one) and math.isinf(other) and one != other:
        return 0.0
    return one / 2 + other / 2 if math.isinf(one) or math.isinf(other) else (one + other) / 2


def middle(values: Sequence[float]) -> float:
    """Return the median of at least one value, of an even number the midpoint of the two in the middle."""
    ordered = sorted(values)
    return midpoint(ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2])
