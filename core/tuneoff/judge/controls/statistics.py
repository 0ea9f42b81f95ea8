"""The statistics of the controls. What needs scipy imports it where it is used."""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist

from tuneoff.judge.stats.location import students_t_quantile

EXACT_UP_TO = 1000  # scores on a side; beyond, the distribution of KS is taken as asymptotic
LEAST_WITHOUT_SPREAD = 5  # pairs; scores are counts of images, so a few differences are equal by chance
ROUNDING = 1e-12  # of the greatest score: equal differences, once subtracted, may differ in their last bits
MOST_SPREAD = 1e4  # margins; beyond, no number of seeds that anyone would run is enough
POWER = 0.9  # with which as many seeds as `seeds_needed` says show equivalence where there is no difference at all


class EquivalenceAnswer(StrEnum):
    """What an interval says of a margin. Not shown is not different: the interval reaches to both sides of a bound."""

    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    NOT_SHOWN = "not shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class KolmogorovSmirnov:
    """Two samples compared by their distribution: the greatest distance, its p-value, and both sizes."""

    distance: float
    p: float
    n: int
    m: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanInterval:
    """Mean of `n` paired differences, its standard deviation over the pairs, and the t-interval of `confidence`.

    A deviation that is rounding alone is 0, and so is then such a mean.
    """

    mean: float
    low: float
    high: float
    deviation: float
    n: int
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalence:
    """Two one-sided t-tests of paired differences against ±margin; `interval` is that of confidence 1 − 2·alpha."""

    interval: MeanInterval
    margin: float
    p: float | None  # the greater of the two one-sided ones: equivalent where it is below alpha; None: without a spread
    verdict: EquivalenceAnswer
    seeds_needed: int | None  # about, by this spread, to show equivalence of what is equal; None: the spread is 0


def kolmogorov_smirnov(one: Sequence[float], other: Sequence[float]) -> KolmogorovSmirnov:
    """Compare two samples, two-sided. Equal values within a sample make the p-value too great, never too small."""
    from scipy import stats

    method = "exact" if max(len(one), len(other)) <= EXACT_UP_TO else "asymp"
    with warnings.catch_warnings():  # scipy takes the asymptotic distribution where the exact one overflows, and warns
        warnings.simplefilter("ignore", RuntimeWarning)
        result = stats.ks_2samp(one, other, alternative="two-sided", method=method)
    return KolmogorovSmirnov(distance=float(result.statistic), p=float(result.pvalue), n=len(one), m=len(other))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted for their family, in the same order.

    Source: S. Holm, Scand. J. Statist. 6 (1979) 65.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [1.0] * len(p_values)
    greatest = 0.0
    for place, index in enumerate(order):
        greatest = max(greatest, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = greatest
    return adjusted


def interval(differences: Sequence[float], confidence: float, scale: float = 0.0) -> MeanInterval:
    """Return the t-interval of the mean of paired differences; at least two.

    `scale` is the greatest size of what was subtracted, in the unit of the differences: it tells a spread from rounding.
    """
    if len(differences) < 2:
        raise ValueError(f"an interval needs at least 2 differences, but got {len(differences)}")
    mean, deviation = statistics.fmean(differences), statistics.stdev(differences)
    rounding = _rounding(differences, scale)
    if deviation <= rounding:
        mean, deviation, half = 0.0 if abs(mean) <= rounding else mean, 0.0, 0.0
    else:
        half = students_t_quantile((1 + confidence) / 2, len(differences) - 1) * deviation / math.sqrt(len(differences))
    return MeanInterval(
        mean=mean, low=mean - half, high=mean + half, deviation=deviation, n=len(differences), confidence=confidence
    )


def equivalence(differences: Sequence[float], margin: float, alpha: float, scale: float = 0.0) -> Equivalence:
    """Test whether paired differences are, in the mean, within ±margin; `scale` as in `interval`.

    Without any spread there is no t-test: the same difference in `LEAST_WITHOUT_SPREAD` pairs or more is judged by where it
    lies, in fewer nothing is shown.

    Raises:
        ValueError: alpha is not below 0.5, so the interval would be empty.

    Source: D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15 (1987) 657.
    """
    if not 0 < alpha < 0.5:
        raise ValueError(f"`0 < alpha < 0.5` must hold, but got {alpha}")
    found = interval(differences, 1 - 2 * alpha, scale)
    if found.deviation == 0:
        verdict = EquivalenceAnswer.EQUIVALENT if abs(found.mean) < margin else EquivalenceAnswer.DIFFERENT
        at_margin = abs(abs(found.mean) - margin) <= _rounding(differences, scale)
        if found.n < LEAST_WITHOUT_SPREAD or at_margin:
            verdict = EquivalenceAnswer.NOT_SHOWN
        return Equivalence(interval=found, margin=margin, p=None, verdict=verdict, seeds_needed=None)
    from scipy import stats

    above = stats.ttest_1samp(differences, -margin, alternative="greater").pvalue
    p = max(float(above), float(stats.ttest_1samp(differences, margin, alternative="less").pvalue))
    if p < alpha:
        verdict = EquivalenceAnswer.EQUIVALENT
    elif found.low > margin or found.high < -margin:
        verdict = EquivalenceAnswer.DIFFERENT
    else:
        verdict = EquivalenceAnswer.NOT_SHOWN
    needed = seeds_needed(found.deviation, margin, alpha)
    return Equivalence(interval=found, margin=margin, p=p, verdict=verdict, seeds_needed=needed)


def seeds_needed(deviation: float, margin: float, alpha: float, power: float = POWER) -> int:
    """Return about how many pairs show equivalence with `power`, if there is no difference and this is the spread."""
    normal = NormalDist()
    quantiles = normal.inv_cdf(1 - alpha) + normal.inv_cdf((1 + power) / 2)
    pairs = (quantiles * min(deviation / margin, MOST_SPREAD)) ** 2
    return max(2, math.ceil(pairs) + 1)  # + 1: t is wider than the normal distribution


def _rounding(differences: Sequence[float], scale: float) -> float:
    """Return the size up to which a deviation is not told from rounding."""
    return ROUNDING * max(scale, *(abs(one) for one in differences))
