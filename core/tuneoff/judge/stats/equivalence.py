"""Whether the mean of paired differences is within a margin: its t-interval, two one-sided t-tests, and the pairs they take."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist

from tuneoff.judge.stats.location import Interval, checked, students_t_quantile
from tuneoff.judge.stats.paired import rounding

LEAST_WITHOUT_SPREAD = 5  # pairs; scores are counts of images, so a few differences are equal by chance
MOST_SPREAD = 1e4  # margins; beyond, no number of seeds that anyone would run is enough
POWER = 0.9  # with which as many seeds as `seeds_for_equivalence` says show equivalence where there is no difference at all


class EquivalenceAnswer(StrEnum):
    """What an interval says of a margin. Not shown is not different: the interval reaches to both sides of a bound."""

    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    NOT_SHOWN = "not shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalence:
    """Two one-sided t-tests of paired differences against ±margin; `interval` is that of confidence 1 − 2·alpha."""

    interval: Interval
    margin: float
    p: float | None  # the greater of the two one-sided ones: equivalent where it is below alpha; None: without a spread
    verdict: EquivalenceAnswer
    seeds_needed: int | None  # about, by this spread, to show equivalence of what is equal; None: the spread is 0


def mean_interval(differences: Sequence[float], confidence: float, scale: float = 0.0) -> Interval:
    """Return the t-interval of the mean of paired differences; at least two. A spread that is rounding alone is none.

    `scale` is the greatest size of what was subtracted, in the unit of the differences: it tells a spread from rounding.
    """
    if len(differences) < 2:
        raise ValueError(f"an interval needs at least 2 differences, but got {len(differences)}")
    mean, deviation, n = statistics.fmean(differences), statistics.stdev(differences), len(differences)
    least = rounding(checked(differences), scale)
    if deviation <= least:
        mean, half = 0.0 if abs(mean) <= least else mean, 0.0
    else:
        half = students_t_quantile((1 + confidence) / 2, n - 1) * deviation / math.sqrt(n)
    method = "mean, Student's t"
    return Interval(estimate=mean, low=mean - half, high=mean + half, confidence=confidence, n=n, method=method)


def equivalence(differences: Sequence[float], margin: float, alpha: float, scale: float = 0.0) -> Equivalence:
    """Test whether paired differences are, in the mean, within ±margin; `scale` as in `mean_interval`.

    Without any spread there is no t-test: the same difference in `LEAST_WITHOUT_SPREAD` pairs or more is judged by where it
    lies, in fewer nothing is shown.

    Raises:
        ValueError: alpha is not below 0.5, so the interval would be empty.

    Source: D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15 (1987) 657.
    """
    if not 0 < alpha < 0.5:
        raise ValueError(f"`0 < alpha < 0.5` must hold, but got {alpha}")
    mean = mean_interval(differences, 1 - 2 * alpha, scale)
    if mean.low == mean.high:
        verdict = EquivalenceAnswer.EQUIVALENT if abs(mean.estimate) < margin else EquivalenceAnswer.DIFFERENT
        at_margin = abs(abs(mean.estimate) - margin) <= rounding(checked(differences), scale)
        if mean.n < LEAST_WITHOUT_SPREAD or at_margin:
            verdict = EquivalenceAnswer.NOT_SHOWN
        return Equivalence(interval=mean, margin=margin, p=None, verdict=verdict, seeds_needed=None)
    from scipy import stats

    above = stats.ttest_1samp(differences, -margin, alternative="greater").pvalue
    p = max(float(above), float(stats.ttest_1samp(differences, margin, alternative="less").pvalue))
    if p < alpha:
        verdict = EquivalenceAnswer.EQUIVALENT
    elif mean.low > margin or mean.high < -margin:
        verdict = EquivalenceAnswer.DIFFERENT
    else:
        verdict = EquivalenceAnswer.NOT_SHOWN
    needed = seeds_for_equivalence(statistics.stdev(differences), margin, alpha)
    return Equivalence(interval=mean, margin=margin, p=p, verdict=verdict, seeds_needed=needed)


def seeds_for_equivalence(deviation: float, margin: float, alpha: float, power: float = POWER) -> int:
    """Return about how many pairs show equivalence with `power`, if there is no difference and this is the spread."""
    normal = NormalDist()
    quantiles = normal.inv_cdf(1 - alpha) + normal.inv_cdf((1 + power) / 2)
    pairs = (quantiles * min(deviation / margin, MOST_SPREAD)) ** 2
    return max(2, math.ceil(pairs) + 1)  # + 1: t is wider than the normal distribution
