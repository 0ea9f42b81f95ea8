"""Same-algorithm control: with `sampler: random` everywhere, scores of trials and selected quality are of one distribution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from tuneoff.experiment.analysis import Margin, quality_margin
from tuneoff.judge.controls.same_configuration import Setting
from tuneoff.judge.controls.statistics import (
    Equivalence,
    EquivalenceAnswer,
    KolmogorovSmirnov,
    equivalence,
    holm,
    kolmogorov_smirnov,
)
from tuneoff.judge.runs import Group, noise_pairs
from tuneoff.measure.resumed import is_counted
from tuneoff.record.run_record import RunRecord

SAMPLER, NO_PRUNER = "random", "none"
QUALITY = "quality.test"
FEWEST_SCORES, FEWEST_SEEDS = 4, 2  # of a side; with fewer no difference at all could show


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """One − other of a metric by seed, in its unit, and the greatest size of what was subtracted."""

    values: tuple[float, ...]
    scale: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Pooled scores of completed trials compared by KS; `adjusted` is Holm's, over all pairs of adapters in the matrix."""

    test: KolmogorovSmirnov
    adjusted: float | None = None  # None: an A/A pair, which is in no family
    differs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPair:
    """Two entries in one setting, over the seeds that both have done. What could not be tested is None, with the reason."""

    setting: str
    one: str
    other: str
    seeds: int
    is_noise: bool = False  # A/A: the same entry twice
    scores: Scores | None = None
    no_scores: str | None = None
    quality: Equivalence | None = None  # one − other
    no_quality: str | None = None
    margin: Margin


def pairs_of(all_settings: Sequence[Setting], analysis: Mapping[str, Any], alpha: float) -> list[EntryPair]:
    """Return every pair of adapters, then every A/A pair, of the settings with `sampler: random` and no pruner.

    With a pruner the frameworks' own rules decide which trials complete: that is another algorithm in each.
    """
    found: list[EntryPair] = []
    noise: list[EntryPair] = []
    for setting in comparable(all_settings):
        firsts = [group for group in setting.compared if group.spec.replicate == 0]
        margin = quality_margin(analysis, firsts[0].spec.experiment.workload)
        found += [_pair(setting, one, other, margin, alpha) for one, other in combinations(firsts, 2)]
        noise += [_pair(setting, one, other, margin, alpha, is_noise=True) for one, other in noise_pairs(setting.groups)]
    return [*_adjusted(found, alpha), *noise]


def comparable(all_settings: Sequence[Setting]) -> list[Setting]:
    """Return the settings that run the same algorithm in at least two entries."""
    same = [one for one in all_settings if one.sampler == SAMPLER and one.pruner == NO_PRUNER]
    return [one for one in same if len(one.compared) > 1]


def common_seeds(one: Group, other: Group) -> list[int]:
    """Return the seeds of which both have a run that is done."""
    return sorted(set(one.done) & set(other.done))


def differences(one: Group, other: Group, metric: str) -> Differences:
    """Return one − other of a metric by seed, where both have it."""
    ours, theirs = one.done, other.done
    pairs = ((_metric(ours[seed], metric), _metric(theirs[seed], metric)) for seed in common_seeds(one, other))
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    scale = max((abs(value) for pair in known for value in pair), default=0.0)
    return Differences(values=tuple(a - b for a, b in known), scale=scale)


def warnings(pairs: Sequence[EntryPair]) -> list[EntryPair]:
    """Return the pairs of adapters whose selected quality differs by more than the margin: the interval is outside of it."""
    return [
        pair
        for pair in pairs
        if not pair.is_noise and pair.quality is not None and pair.quality.verdict is EquivalenceAnswer.DIFFERENT
    ]


def _pair(setting: Setting, one: Group, other: Group, margin: Margin, alpha: float, *, is_noise: bool = False) -> EntryPair:
    seeds = common_seeds(one, other)
    ours, theirs = (list(_scores(group, seeds)) for group in (one, other))
    scores, no_scores = None, None
    if min(len(ours), len(theirs)) < FEWEST_SCORES:
        no_scores = f"{len(ours)} and {len(theirs)} completed trials in common seeds, fewer than {FEWEST_SCORES}"
    else:
        scores = Scores(test=kolmogorov_smirnov(ours, theirs))
    found = differences(one, other, QUALITY)
    quality, no_quality = None, None
    if margin.value is None:
        no_quality = margin.source
    elif not 0 < alpha < 0.5:
        no_quality = f"analysis.confidence must be above 0.5 for an interval to judge by, but it is {1 - alpha:g}"
    elif len(found.values) < FEWEST_SEEDS:
        no_quality = f"{QUALITY} in both of {len(found.values)} seeds, fewer than {FEWEST_SEEDS}"
    else:
        quality = equivalence(found.values, margin.value, alpha, found.scale)
    return EntryPair(
        setting=setting.name,
        one=one.label,
        other=other.label,
        seeds=len(seeds),
        is_noise=is_noise,
        scores=scores,
        no_scores=no_scores,
        quality=quality,
        no_quality=no_quality,
        margin=margin,
    )


def _adjusted(pairs: Sequence[EntryPair], alpha: float) -> list[EntryPair]:
    tested = [pair.scores.test.p for pair in pairs if pair.scores is not None]
    by_order = iter(holm(tested))
    found = []
    for pair in pairs:
        if pair.scores is not None:
            adjusted = next(by_order)
            pair = replace(pair, scores=replace(pair.scores, adjusted=adjusted, differs=adjusted < alpha))
        found.append(pair)
    return found


def _scores(group: Group, seeds: Sequence[int]) -> Iterator[float]:
    done = group.done
    for seed in seeds:
        for trial in done[seed].trials:
            if trial.state == "completed" and trial.value is not None:
                yield trial.value


def _metric(run: RunRecord, name: str) -> float | None:
    """Return a metric's value; of a run that was continued only what counts trials or says how good they are."""
    if run.continues is not None and not is_counted(name):
        return None
    return run.metrics[name].value if name in run.metrics else None
