"""How often 95 % intervals cover what they are of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulation.distributions import REFERENCE, STATED, Distribution
from benchmarks.simulation.row import SimulationRow, coverage_range
from tuneoff.judge.stats.location import depth, interpolated, students_t
from tuneoff.judge.stats.sign_flip import generator

Floats = NDArray[np.float64]
Method = Callable[[Floats, float], tuple[Floats, Floats, Floats]]  # (sorted rows, confidence) -> estimates, lows, highs

CONFIDENCE = 0.95
SIZES = (10, 20, 30)
SMALL = (3, 5, 7)  # shown, never claimed


def medians(ordered: Floats, confidence: float) -> tuple[Floats, Floats, Floats]:
    """Return what `tuneoff.judge.stats.location.median` gives, for many samples at once."""
    n = ordered.shape[1]
    estimates = (ordered[:, (n - 1) // 2] + ordered[:, n // 2]) / 2
    if depth(n, confidence) == 0:
        return estimates, *students_t(ordered, confidence)
    return estimates, *interpolated(ordered, confidence)


@lru_cache
def true_median(distribution: Distribution) -> float:
    """Return the median of a distribution."""
    return float(np.median(distribution.values(generator("reference", distribution.name), (REFERENCE,))))


def share_covered(method: Method, distribution: Distribution, truth: float, n: int, repetitions: int) -> float:
    """Return in which share of the repetitions the interval, widened to half a grid step, covers the true value."""
    ordered = np.sort(distribution.values(generator("coverage", distribution.name, str(n)), (repetitions, n)), axis=1)
    estimates, lows, highs = method(ordered, CONFIDENCE)
    half = distribution.step / 2
    lows, highs = np.minimum(lows, estimates - half), np.maximum(highs, estimates + half)
    tolerance = 1e-12 * abs(truth)
    return float(((lows <= truth + tolerance) & (truth - tolerance <= highs)).mean())


def rows(repetitions: int) -> Iterator[SimulationRow]:
    """Yield the coverage of the median's interval for every stated distribution and size."""
    for distribution in STATED:
        for n in (*SMALL, *SIZES):
            share = share_covered(medians, distribution, true_median(distribution), n, repetitions)
            required = coverage_range(distribution.step > 0) if n in SIZES else None
            yield SimulationRow(what="median", distribution=distribution.name, n=n, share=share, required=required)
