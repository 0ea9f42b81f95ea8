"""Same-algorithm control: with `sampler: random` everywhere, scores of trials and selected quality are of one distribution."""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations
from statistics import NormalDist
from typing import Any

from tuneoff.experiment.analysis import Margin, quality_margin
from tuneoff.judge.answers.answer import Question
from tuneoff.judge.answers.judging import BOTH_FAILED
from tuneoff.judge.answers.judging import pair as by_seed
from tuneoff.judge.controls.same_configuration import Setting, setting_text
from tuneoff.judge.groups import Group, noise_pairs
from tuneoff.judge.stats.location import Interval, checked, students_t_quantile
from tuneoff.judge.stats.paired import rounding

EXACT_UP_TO = 1000  # scores on a side; beyond, the distribution of KS is taken as asymptotic
LEAST_WITHOUT_SPREAD = 5  # pairs; scores are counts of images, so a few differences are equal by chance
MOST_SPREAD = 1e4  # margins; beyond, no number of seeds that anyone would run is enough
POWER = 0.9  # with which as many seeds as `seeds_needed` says show equivalence where there is no difference at all
SAMPLER, NO_PRUNER = "random", "none"
QUALITY = "quality.test"
FAILED = "a failed run is worse than any success, so there is no mean"
FEWEST_SCORES, FEWEST_SEEDS = 4, 2  # of a side; with fewer no difference at all could show


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
class Equivalence:
    """Two one-sided t-tests of paired differences against ±margin; `interval` is that of confidence 1 − 2·alpha."""

    interval: Interval
    margin: float
    p: float | None  # the greater of the two one-sided ones: equivalent where it is below alpha; None: without a spread
    verdict: EquivalenceAnswer
    seeds_needed: int | None  # about, by this spread, to show equivalence of what is equal; None: the spread is 0


def kolmogorov_smirnov(sample: Sequence[float], other: Sequence[float]) -> KolmogorovSmirnov:
    """Compare two samples, two-sided. Equal values within a sample make the p-value too great, never too small."""
    from scipy import stats

    method = "exact" if max(len(sample), len(other)) <= EXACT_UP_TO else "asymp"
    with warnings.catch_warnings():  # scipy takes the asymptotic distribution where the exact one overflows, and warns
        warnings.simplefilter("ignore", RuntimeWarning)
        result = stats.ks_2samp(sample, other, alternative="two-sided", method=method)
    return KolmogorovSmirnov(distance=float(result.statistic), p=float(result.pvalue), n=len(sample), m=len(other))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted for their family, in the same order.

    Source: S. Holm, Scand. J. Statist. 6 (1979) 65.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [1.0] * len(p_values)
    greatest = 0.0
    for rank, index in enumerate(order):
        greatest = max(greatest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = greatest
    return adjusted


def interval(differences: Sequence[float], confidence: float, scale: float = 0.0) -> Interval:
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
    """Test whether paired differences are, in the mean, within ±margin; `scale` as in `interval`.

    Without any spread there is no t-test: the same difference in `LEAST_WITHOUT_SPREAD` pairs or more is judged by where it
    lies, in fewer nothing is shown.

    Raises:
        ValueError: alpha is not below 0.5, so the interval would be empty.

    Source: D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15 (1987) 657.
    """
    if not 0 < alpha < 0.5:
        raise ValueError(f"`0 < alpha < 0.5` must hold, but got {alpha}")
    mean = interval(differences, 1 - 2 * alpha, scale)
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
    needed = seeds_needed(statistics.stdev(differences), margin, alpha)
    return Equivalence(interval=mean, margin=margin, p=p, verdict=verdict, seeds_needed=needed)


def seeds_needed(deviation: float, margin: float, alpha: float, power: float = POWER) -> int:
    """Return about how many pairs show equivalence with `power`, if there is no difference and this is the spread."""
    normal = NormalDist()
    quantiles = normal.inv_cdf(1 - alpha) + normal.inv_cdf((1 + power) / 2)
    pairs = (quantiles * min(deviation / margin, MOST_SPREAD)) ** 2
    return max(2, math.ceil(pairs) + 1)  # + 1: t is wider than the normal distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """One − other of a metric by seed, in its unit, and the greatest size of what was subtracted.

    `failures`: runs of the two that failed. `lacking`: why nothing can be said of the mean.
    """

    values: tuple[float, ...]
    scale: float
    failures: tuple[int, int]
    lacking: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreComparison:
    """Pooled scores of completed trials compared by KS; `adjusted` is Holm's, over all pairs of adapters in the matrix."""

    test: KolmogorovSmirnov
    adjusted: float | None = None  # None: an A/A pair, which is in no family
    differs: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPair:
    """Two entries in one setting, over the seeds that both have done. What could not be tested is None, with the reason."""

    setting: str
    one: str
    other: str
    seeds: int
    is_noise: bool = False  # A/A: the same entry twice
    scores: ScoreComparison | None = None
    no_scores: str | None = None
    quality: Equivalence | None = None  # one − other
    no_quality: str | None = None
    failures: tuple[int, int]
    margin: Margin


def pairs_of(all_settings: Sequence[Setting], analysis: Mapping[str, Any], alpha: float) -> list[EntryPair]:
    """Return every pair of adapters, then every A/A pair, of the settings with `sampler: random`, no pruner and two entries.

    With a pruner the frameworks' own rules decide which trials complete: that is another algorithm in each.
    """
    pairs: list[EntryPair] = []
    noise: list[EntryPair] = []
    for groups in all_settings:
        is_same = (groups[0].scope.sampler, groups[0].scope.pruner) == (SAMPLER, NO_PRUNER)
        if not is_same or sum(not group.emulated for group in groups) < 2:
            continue
        firsts = [group for group in groups if not group.emulated and group.replicate == 0]
        margin = quality_margin(analysis, firsts[0].spec.experiment.workload)
        pairs += [_pair(*pair, margin, alpha) for pair in combinations(firsts, 2)]
        noise += [_pair(*pair, margin, alpha, is_noise=True) for pair in noise_pairs(groups)]
    return [*_adjusted(pairs, alpha), *noise]


def differences(group: Group, other: Group, metric: str) -> Differences:
    """Return group − other of a metric by seed. A seed in which one failed leaves no mean; in which both did, nothing."""
    question = Question(name="", metric=metric, unit="", better="max", scale="difference", margin=None, margin_text="")
    paired = by_seed(group, other, question)
    values = tuple(row.difference for row in paired.usable if row.difference is not None and row.reason != BOTH_FAILED)
    lacking = paired.excluded
    if any(map(math.isinf, values)):
        lacking = FAILED
    elif len(values) < FEWEST_SEEDS:
        lacking = lacking or f"{metric} in both of {len(values)} seeds, fewer than {FEWEST_SEEDS}"
    return Differences(values=values, scale=paired.scale, failures=paired.failures, lacking=lacking)


def differing_pairs(pairs: Sequence[EntryPair]) -> list[EntryPair]:
    """Return the pairs of adapters whose selected quality differs by more than the margin: the interval is outside of it."""
    return [
        pair
        for pair in pairs
        if not pair.is_noise and pair.quality is not None and pair.quality.verdict is EquivalenceAnswer.DIFFERENT
    ]


def _pair(group: Group, other: Group, margin: Margin, alpha: float, *, is_noise: bool = False) -> EntryPair:
    seeds = sorted(set(group.done) & set(other.done))
    ours, theirs = (list(_scores(side, seeds)) for side in (group, other))
    scores, no_scores = None, None
    if min(len(ours), len(theirs)) < FEWEST_SCORES:
        no_scores = f"{len(ours)} and {len(theirs)} completed trials in common seeds, fewer than {FEWEST_SCORES}"
    else:
        scores = ScoreComparison(test=kolmogorov_smirnov(ours, theirs))
    paired = differences(group, other, QUALITY)
    quality, no_quality = None, None
    if margin.value is None:
        no_quality = margin.source
    elif not 0 < alpha < 0.5:
        no_quality = f"analysis.confidence must be above 0.5 for an interval to judge by, but it is {1 - alpha:g}"
    elif paired.lacking is not None:
        no_quality = paired.lacking
    else:
        quality = equivalence(paired.values, margin.value, alpha, paired.scale)
    return EntryPair(
        setting=setting_text(group),
        one=group.label,
        other=other.label,
        seeds=len(seeds),
        is_noise=is_noise,
        scores=scores,
        no_scores=no_scores,
        quality=quality,
        no_quality=no_quality,
        failures=paired.failures,
        margin=margin,
    )


def _adjusted(pairs: Sequence[EntryPair], alpha: float) -> list[EntryPair]:
    tested = [pair.scores.test.p for pair in pairs if pair.scores is not None]
    by_order = iter(holm(tested))
    result = []
    for pair in pairs:
        if pair.scores is not None:
            adjusted = next(by_order)
            pair = replace(pair, scores=replace(pair.scores, adjusted=adjusted, differs=adjusted < alpha))
        result.append(pair)
    return result


def _scores(group: Group, seeds: Sequence[int]) -> Iterator[float]:
    done = group.done
    for seed in seeds:
        for trial in done[seed].trials:
            if trial.state == "completed" and trial.value is not None:
                yield trial.value
