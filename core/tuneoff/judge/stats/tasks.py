"""The regret over tasks. Every task has the same weight, however many seeds it has; lower is better, inf is a failure.

The tasks are taken as they are: the intervals are of these tasks with other seeds, not of other tasks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tuneoff.judge.stats.location import NEGLIGIBLE, Interval, checked
from tuneoff.judge.stats.sign_flip import generator

if TYPE_CHECKING:
    from tuneoff.judge.stats.location import Floats

RESAMPLES = 3999


def stratified_iqm(
    scores: Mapping[str, Sequence[float]], confidence: float, *, key: tuple[str, ...], resamples: int = RESAMPLES
) -> Interval:
    """Return the interquartile mean over the runs of all tasks, and its bootstrap interval stratified by task.

    Resampling n seeds shows only (n − 1) / n of the variance, so the interval is widened by the root of n / (n − 1); without
    that it is far too short at 3 seeds. A task of one seed gives no interval.

    Raises:
        ValueError: there is no task, one has no score, or a score is NaN.

    Source: R. Agarwal et al., NeurIPS 2021 (arXiv 2108.13264), without the widening.
    """
    import numpy as np

    if not scores:
        raise ValueError("`scores` must hold at least one task, but it is empty")
    # By name: what is drawn for one must not depend on the order.
    tasks = {name: checked(scores[name], f"scores of task {name!r}") for name in sorted(scores)}
    sizes = [values.size for values in tasks.values()]
    weights = np.concatenate([np.full(size, 1 / (size * len(sizes))) for size in sizes])
    pooled = np.concatenate(list(tasks.values()))
    estimate = float(_weighted_iqm(pooled[None, :], weights)[0])
    resampled = [
        values[generator("stratified iqm", *key, name).integers(0, values.size, (resamples, values.size))]
        for name, values in tasks.items()
    ]
    means = _weighted_iqm(np.concatenate(resampled, axis=1), weights)
    return _interval(estimate, means, sizes, confidence, "IQM over tasks, stratified bootstrap")


def _weighted_iqm(rows: Floats, weights: Floats) -> Floats:
    """Return the mean of the middle half of the weight of each row (rows, n); a run at a quartile counts in part."""
    import numpy as np

    places = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, places, axis=1)
    upper = np.cumsum(weights[places], axis=1)
    inside = np.clip(upper, 0.25, 0.75)
    shares = np.diff(inside, axis=1, prepend=0.25) * 2
    finite = np.isfinite(ordered)
    means = (shares * np.where(finite, ordered, 0.0)).sum(axis=1)
    surplus = np.where(finite, 0.0, shares * np.sign(ordered)).sum(axis=1)
    return np.where(surplus > NEGLIGIBLE, np.inf, np.where(surplus < -NEGLIGIBLE, -np.inf, means))


def _interval(estimate: float, resampled: Floats, sizes: Sequence[int], confidence: float, method: str) -> Interval:
    import numpy as np

    low, high = -math.inf, math.inf
    if min(sizes) > 1:
        ordered = np.sort(resampled)
        k = max(1, int((ordered.size + 1) * (1 - confidence) / 2 + 1e-9))
        wider = math.sqrt(float(np.mean([size / (size - 1) for size in sizes])))
        low, high = _widened(estimate, float(ordered[k - 1]), wider), _widened(estimate, float(ordered[-k]), wider)
    return Interval(
        estimate=estimate,
        low=min(low, estimate),
        high=max(high, estimate),
        confidence=confidence,
        n=sum(sizes),
        method=method,
    )


def _widened(estimate: float, bound: float, factor: float) -> float:
    return bound if math.isinf(bound) or math.isinf(estimate) else estimate + (bound - estimate) * factor
