"""All controls of a results folder, with algorithm effect, runtime effect and noise floor: three differences, paired by seed.

Algorithm: a model-based sampler minus random search, in the same adapter. Runtime: random search in an adapter minus random
search in the plain pool, so the same algorithm. Noise floor: a repetition of an entry minus its first (A/A).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

from tuneoff.experiment.analysis import Margin, quality_margin
from tuneoff.experiment.strategies import LISTED
from tuneoff.judge.answers.analysis_plan import frozen
from tuneoff.judge.answers.answer import Question
from tuneoff.judge.answers.judging import BOTH_FAILED
from tuneoff.judge.answers.judging import pair as by_seed
from tuneoff.judge.controls.same_configuration import (
    Equality,
    SameConfiguration,
    Setting,
    same_configurations,
    setting_text,
)
from tuneoff.judge.groups import Group, by_scope, grouped, noise_pairs
from tuneoff.judge.results import EXCLUDED, POOL, Results
from tuneoff.judge.stats.equivalence import Equivalence, EquivalenceAnswer, equivalence, mean_interval
from tuneoff.judge.stats.location import Interval

Kind = Literal["algorithm", "runtime", "noise floor"]
EXACT_UP_TO = 1000  # scores on a side; beyond, the distribution of KS is taken as asymptotic
SAMPLER, NO_PRUNER = "random", "none"
NOT_MODELS = (SAMPLER, *LISTED)
QUALITY = "quality.test"
FAILED = "a failed run is worse than any success, so there is no mean"
FEWEST_SCORES, FEWEST_SEEDS = 4, 2  # of a side; with fewer no difference at all could show


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """What the controls of a matrix say."""

    same_configurations: tuple[SameConfiguration, ...]
    pairs: tuple[EntryPair, ...]
    effects: tuple[Effect, ...]
    confidence: float

    @property
    def alpha(self) -> float:
        return 1 - self.confidence

    @property
    def is_empty(self) -> bool:
        """Whether the matrix has nothing that a control could compare."""
        return not (self.same_configurations or self.pairs or self.effects)

    @property
    def contradicts(self) -> bool:
        """Whether a control says that the adapters were not treated equally: unequal bits, or quality outside its margin."""
        different = any(control.answer is Equality.DIFFERENT for control in self.same_configurations)
        return different or bool(differing_pairs(self.pairs))


def controls(results: Results) -> Controls:
    """Return the controls of a matrix, by the analysis that its plan froze."""
    analysis = results.plan.analysis
    plan = frozen(analysis)
    confidence = plan.confidence
    all_settings = [*map(tuple, by_scope(group for group in grouped(results) if group.unskipped).values())]
    return Controls(
        same_configurations=tuple(same_configurations(all_settings)),
        pairs=tuple(pairs_of(all_settings, analysis, 1 - confidence)),
        effects=tuple(effects(all_settings, plan.questions[plan.primary], confidence)),
        confidence=confidence,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One difference, one − other, of a metric; `interval` is None with a `reason`."""

    kind: Kind
    one: str
    other: str
    metric: str
    unit: str
    interval: Interval | None = None
    reason: str | None = None
    failures: tuple[int, int] = (0, 0)


def effects(all_settings: Sequence[Setting], primary_metric: str, confidence: float) -> Iterator[Effect]:
    """Yield the effects on the selected quality and on the metric that decides; none where there is nothing to subtract.

    First what models add, then what runtimes do, then chance.
    """
    every = [group for groups in all_settings for group in groups]
    # The group of the same entry, pruner and variant with random search.
    keys = [(group.label, group.scope.pruner, group.variant) for group in every]
    random = {key: group for key, group in reversed([*zip(keys, every, strict=True)]) if group.scope.sampler == SAMPLER}
    pairs: list[tuple[Kind, Group, Group, str]] = [
        ("algorithm", group, random[key], SAMPLER)
        for key, group in zip(keys, every, strict=True)
        if group.scope.sampler not in NOT_MODELS and key in random
    ]
    for groups in all_settings:
        pools = [group for group in groups if not group.excluded and group.adapter == POOL and group.replicate == 0]
        pairs += [
            ("runtime", group, pool, pool.label)
            for pool in pools[:1]
            for group in groups
            if group is not pool and group.replicate == 0 and pool.scope.sampler == SAMPLER
        ]
    pairs += [("noise floor", again, first, first.label) for groups in all_settings for again, first in noise_pairs(groups)]
    for kind, group, other, other_name in pairs:
        for metric in dict.fromkeys((QUALITY, primary_metric)):
            name = f"{group.label} {setting_text(group)}"
            bare = Effect(kind=kind, one=name, other=other_name, metric=metric, unit=group.estimate(metric).unit)
            if group.excluded or other.excluded:
                yield replace(bare, reason=EXCLUDED)
                continue
            values, scale, failures, lacking = differences(group, other, metric)
            mean = mean_interval(values, confidence, scale) if lacking is None else None
            yield replace(bare, interval=mean, reason=lacking, failures=failures)


@dataclass(frozen=True, slots=True, kw_only=True)
class KolmogorovSmirnov:
    """Two samples compared by their distribution: the greatest distance, its p-value, and both sizes."""

    distance: float
    p: float
    n: int
    m: int


def kolmogorov_smirnov(sample: Sequence[float], other: Sequence[float]) -> KolmogorovSmirnov:
    """Compare two samples, two-sided. Equal values within a sample make the p-value too great, never too small."""
    from scipy import stats

    method = "exact" if max(len(sample), len(other)) <= EXACT_UP_TO else "asymp"
    with warnings.catch_warnings():  # scipy takes the asymptotic distribution where the exact one overflows, and warns
        warnings.simplefilter("ignore", RuntimeWarning)
        result = stats.ks_2samp(sample, other, method=method)
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
        if not is_same or sum(not group.excluded for group in groups) < 2:
            continue
        firsts = [group for group in groups if not group.excluded and group.replicate == 0]
        margin = quality_margin(analysis, firsts[0].spec.experiment.workload)
        pairs += [_pair(*pair, margin, alpha) for pair in combinations(firsts, 2)]
        noise += [_pair(*pair, margin, alpha, is_noise=True) for pair in noise_pairs(groups)]
    adjusted = iter(holm([pair.scores.test.p for pair in pairs if pair.scores is not None]))
    for position, pair in enumerate(pairs):
        if pair.scores is not None:
            p = next(adjusted)
            pairs[position] = replace(pair, scores=replace(pair.scores, adjusted=p, differs=p < alpha))
    return [*pairs, *noise]


def differences(group: Group, other: Group, metric: str) -> tuple[list[float], float, tuple[int, int], str | None]:
    """Return group − other of a metric by seed, in its unit, the greatest size of what was subtracted, how many runs of each
    failed, and why nothing can be said of the mean.

    A seed in which one failed leaves no mean; in which both did, nothing.
    """
    question = Question(name="", metric=metric, unit="", better="max", scale="difference", margin=None, margin_text="")
    paired = by_seed(group, other, question)
    values = [row.difference for row in paired.usable if row.difference is not None and row.reason != BOTH_FAILED]
    lacking = paired.excluded
    if any(map(math.isinf, values)):
        lacking = FAILED
    elif len(values) < FEWEST_SEEDS:
        lacking = lacking or f"{metric} in both of {len(values)} seeds, fewer than {FEWEST_SEEDS}"
    return values, paired.scale, paired.failures, lacking


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
    scores = no_scores = quality = no_quality = None
    if min(len(ours), len(theirs)) < FEWEST_SCORES:
        no_scores = f"{len(ours)} and {len(theirs)} completed trials in common seeds, fewer than {FEWEST_SCORES}"
    else:
        scores = ScoreComparison(test=kolmogorov_smirnov(ours, theirs))
    values, scale, failures, lacking = differences(group, other, QUALITY)
    if margin.value is None:
        no_quality = margin.source
    elif not 0 < alpha < 0.5:
        no_quality = f"analysis.confidence must be above 0.5 for an interval to judge by, but it is {1 - alpha:g}"
    elif lacking is not None:
        no_quality = lacking
    else:
        quality = equivalence(values, margin.value, alpha, scale)
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
        failures=failures,
        margin=margin,
    )


def _scores(group: Group, seeds: Sequence[int]) -> Iterator[float]:
    done = group.done
    for seed in seeds:
        for trial in done[seed].trials:
            if trial.state == "completed" and trial.value is not None:
                yield trial.value
