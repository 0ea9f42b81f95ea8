"""The bootstrap of trimmed means, as weights of the sorted values: one matrix product gives all resamples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuneoff.judge.stats.failures_as_infinity import weighted_sums
from tuneoff.judge.stats.trimmed import cut_off

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

RESAMPLES = 9999


def trimmed_weights(n: int, trim: float, generator: np.random.Generator, resamples: int = RESAMPLES) -> Floats:
    """Return the weights (resamples, n) that the sorted values have in the trimmed mean of each resample."""
    import numpy as np

    drawn = np.sort(generator.integers(0, n, (resamples, n)), axis=1)
    cut = cut_off(n, trim)
    kept = drawn[:, cut : n - cut] + n * np.arange(resamples)[:, None]
    counts = np.bincount(kept.ravel(), minlength=n * resamples).reshape(resamples, n)
    return np.asarray(counts / (n - 2 * cut))


def percentiles(means: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return the two-sided percentile bounds of each row of `means` (samples, resamples), without interpolation."""
    import numpy as np

    resamples = means.shape[1]
    place = max(1, int((resamples + 1) * (1 - confidence) / 2 + 1e-9))
    ordered = np.sort(means, axis=1)  # faster than two partitions
    return ordered[:, place - 1], ordered[:, resamples - place]


def percentile_bounds(ordered: Floats, weights: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return the percentile bootstrap's bounds of sorted rows (samples, n)."""
    return percentiles(weighted_sums(ordered, weights.T), confidence)
