"""Did a metric get better from epoch to epoch, beyond its noise? Of one trial, or of all trials of a run together.

Without progress every order of a trial's values is as likely as any other. So the ranks R of its values are summed with weights
w = 1 / epoch, less their mean: early epochs, in which most is learned, count most. This sum has the mean 0 and the variance
Σw² Σ(R - mean)² / (n - 1), ties included. Of several trials sums and variances are added, whatever their scales, and z, the sum
over the root of the variance, is held to the normal distribution. What was learned in the first epoch does not count: nobody
validates before it.

Source: permutation test of a linear rank statistic, stratified by trial (J. Hájek, Z. Šidák, Theory of Rank Tests, 1967, III.3).
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from tuneoff.experiment.spec import Objective
from tuneoff.record.run_record import TrialRecord

CRITICAL = 1.645  # of z, one-sided at 5 %
LEAST = 2 * CRITICAL  # of z where each value is better than the one before: with less nothing is told


def has_progress(trials: Iterable[TrialRecord], objective: Objective) -> bool | None:
    """Tell whether the objective's metric got better over the epochs of the trials; None: they are too few to tell."""
    epochs = (trial.attempts[-1].epochs for trial in trials if trial.attempts)
    values = ([epoch.metrics.get(objective.metric) for epoch in of_trial] for of_trial in epochs)
    histories = [[value for value in of_trial if value is not None] for of_trial in values]
    if _z([_greatest(len(history)) for history in histories]) < LEAST:
        return None
    z = _z([_summed(history) for history in histories])
    return (z if objective.mode == "max" else -z) >= CRITICAL


def _z(summed: Sequence[tuple[float, float]]) -> float:
    variance = sum(variance for _, variance in summed)
    return sum(value for value, _ in summed) / math.sqrt(variance) if variance > 0 else 0.0


@functools.cache
def _greatest(count: int) -> tuple[float, float]:
    return _summed(range(count))


def _summed(values: Sequence[float]) -> tuple[float, float]:
    """Return the weighted sum of ranks, above 0 where values rise, and its variance."""
    count, ordered, weights = len(values), sorted(values), _weights(len(values))
    ranks = [(bisect_left(ordered, value) + bisect_right(ordered, value) - count) / 2 for value in values]  # less their mean
    squares = sum(weight * weight for weight in weights) * sum(rank * rank for rank in ranks)
    return -sum(map(float.__mul__, weights, ranks)), squares / (count - 1) if count > 1 else 0.0


@functools.cache
def _weights(count: int) -> tuple[float, ...]:
    mean = sum(1 / epoch for epoch in range(1, count + 1)) / (count or 1)
    return tuple(1 / epoch - mean for epoch in range(1, count + 1))
