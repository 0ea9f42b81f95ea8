"""Median and interquartile mean of the values of one group, each with an interval that holds at small n.

The choices rest on simulation: docs/statistics.md, `python -m benchmarks.simulation`. A failed run is +inf (or -inf, where
greater is better): it has the worst rank, and where failures reach the estimate or may reach it, the bound on their side is
infinite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tuneoff.judge.stats import order
from tuneoff.judge.stats.failures_as_infinity import checked, midpoint
from tuneoff.judge.stats.interval import Interval
from tuneoff.judge.stats.keyed import generator
from tuneoff.judge.stats.resampling import percentile_bounds, trimmed_weights
from tuneoff.judge.stats.trimmed import IQM_TRIM, cut_off, trimmed, yuen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

BOOTSTRAP_FROM = 20  # values; below, its intervals of the IQM are too short


def median(values: Sequence[float], confidence: float, *, grid_step: float = 0.0, key: tuple[str, ...] = ()) -> Interval:
    """Return the median with the interval of its order statistics, interpolated to the confidence.

    Too few values for that (5 at 95 %): Student's t-interval. The bounds are at least half a grid step away. `key` changes
    nothing: no random number is drawn.

    Raises:
        ValueError: there is no value, or one is NaN.
    """
    import numpy as np

    ordered = np.sort(checked(values))
    n = ordered.size
    estimate = midpoint(float(ordered[(n - 1) // 2]), float(ordered[n // 2]))
    if n == 1:
        return _single(estimate, confidence, "median")
    if order.depth(n, confidence) == 0:
        low, high = _t_bounds(ordered, confidence, trim=0.0)
        return _interval(estimate, low, high, confidence, n, "median, Student's t", grid_step)
    lows, highs = order.interpolated(ordered[None, :], confidence)
    return _interval(estimate, float(lows[0]), float(highs[0]), confidence, n, "median, interpolated order statistics", grid_step)


def iqm(values: Sequence[float], confidence: float, *, grid_step: float = 0.0, key: tuple[str, ...] = ()) -> Interval:
    """Return the interquartile mean: of the middle half. Below 20 values with Yuen's interval, from there on by bootstrap.

    `key` names what is estimated; equal keys draw equal random numbers. The bounds are at least half a grid step away.

    Raises:
        ValueError: there is no value, or one is NaN.
    """
    import numpy as np

    array = checked(values)
    if array.size < BOOTSTRAP_FROM:
        return trimmed_mean(values, confidence, trim=IQM_TRIM, grid_step=grid_step)
    ordered = np.sort(array)
    weights = trimmed_weights(ordered.size, IQM_TRIM, generator("iqm", *key))
    lows, highs = percentile_bounds(ordered[None, :], weights, confidence)
    estimate = extended_trimmed_mean(ordered, IQM_TRIM)
    return _interval(estimate, float(lows[0]), float(highs[0]), confidence, ordered.size, "IQM, bootstrap", grid_step)


def trimmed_mean(values: Sequence[float], confidence: float, *, trim: float, grid_step: float = 0.0) -> Interval:
    """Return the mean without the share `trim` of each end, with the interval of Yuen.

    Raises:
        ValueError: there is no value, one is NaN, or nothing would be left.
    """
    import numpy as np

    if not 0 <= trim < 0.5:
        raise ValueError(f"`0 <= trim < 0.5` must hold, but got {trim}")
    ordered = np.sort(checked(values))
    estimate = extended_trimmed_mean(ordered, trim)
    name = "IQM" if trim == IQM_TRIM else f"{100 * trim:g} % trimmed mean"
    if ordered.size == 1:
        return _single(estimate, confidence, name)
    low, high = _t_bounds(ordered, confidence, trim)
    return _interval(estimate, low, high, confidence, ordered.size, f"{name}, Yuen", grid_step)


def extended_trimmed_mean(ordered: Floats, trim: float) -> float:
    """Return the trimmed mean of sorted values; infinite where a failure is left, 0 where opposite ones cancel."""
    import numpy as np

    cut = cut_off(ordered.size, trim)
    kept = ordered[cut : ordered.size - cut]
    surplus = int((kept == np.inf).sum()) - int((kept == -np.inf).sum())
    if surplus:
        return math.copysign(math.inf, surplus)
    finite = kept[np.isfinite(kept)]
    return float(finite.mean()) if finite.size else 0.0


def _t_bounds(ordered: Floats, confidence: float, trim: float) -> tuple[float, float]:
    """Return Yuen's bounds; the bound on the failures' side is infinite where they reach, or may reach, what is kept.

    They may where a resample holds more of them than are cut off with a probability above that of a bound's error. The other
    bound takes the failures as no worse than the worst success.
    """
    import numpy as np

    finite = ordered[np.isfinite(ordered)]
    if finite.size == 0:
        return float(ordered[0]), float(ordered[-1])
    inside = np.clip(ordered, finite[0], finite[-1])
    error = trimmed(inside[None, :], trim).error[0]
    lows, highs = yuen(inside[None, :], confidence, trim)
    low, high = (float(lows[0]), float(highs[0])) if error > 0 else (float(lows[0]),) * 2
    n, cut = ordered.size, cut_off(ordered.size, trim)
    tail = (1 - confidence) / 2
    if _more_than(cut, n, int((ordered == np.inf).sum())) > tail:
        high = math.inf
    if _more_than(cut, n, int((ordered == -np.inf).sum())) > tail:
        low = -math.inf
    return low, high


def _more_than(cut: int, n: int, failures: int) -> float:
    """Return the probability that of n values drawn with replacement more than `cut` are among the failures."""
    share = failures / n
    return 1 - sum(math.comb(n, count) * share**count * (1 - share) ** (n - count) for count in range(cut + 1))


def _single(estimate: float, confidence: float, name: str) -> Interval:
    return Interval(
        estimate=estimate, low=-math.inf, high=math.inf, confidence=confidence, n=1, method=f"{name} of one value: no interval"
    )


def _interval(estimate: float, low: float, high: float, confidence: float, n: int, method: str, grid_step: float) -> Interval:
    """Return the interval, at least half a grid step to each side of the estimate."""
    half = grid_step / 2
    return Interval(
        estimate=estimate,
        low=min(low, estimate - half),
        high=max(high, estimate + half),
        confidence=confidence,
        n=n,
        method=method,
    )
