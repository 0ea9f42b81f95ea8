"""All controls of a results folder, with algorithm effect, runtime effect and noise floor: three differences, paired by seed.

Algorithm: a model-based sampler minus random search, in the same adapter. Runtime: random search in an adapter minus random
search in the plain pool, so the same algorithm. Noise floor: a repetition of an entry minus its first (A/A).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tuneoff.experiment.names import variant_text
from tuneoff.experiment.schema import AnalysisPart
from tuneoff.experiment.strategies import LISTED
from tuneoff.judge.answers.analysis_plan import frozen
from tuneoff.judge.controls.same_algorithm import (
    QUALITY,
    SAMPLER,
    EntryPair,
    differences,
    differing_pairs,
    pairs_of,
)
from tuneoff.judge.controls.same_configuration import (
    Equality,
    SameConfiguration,
    Setting,
    same_configurations,
    setting_text,
    settings,
)
from tuneoff.judge.groups import Group, grouped, noise_pairs
from tuneoff.judge.results import Results
from tuneoff.judge.runs import EMULATED, POOL
from tuneoff.judge.stats.equivalence import mean_interval
from tuneoff.judge.stats.location import Interval

_DEFAULTS = AnalysisPart()
Kind = Literal["algorithm", "runtime", "noise floor"]
NOT_MODELS = (SAMPLER, *LISTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """What the controls of a matrix say."""

    same_configurations: tuple[SameConfiguration, ...] = ()
    pairs: tuple[EntryPair, ...] = ()
    effects: tuple[Effect, ...] = ()
    confidence: float = _DEFAULTS.confidence

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
    all_settings = settings(grouped(results))
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


def effects(all_settings: Sequence[Setting], primary_metric: str, confidence: float) -> list[Effect]:
    """Return the effects on the selected quality and on the metric that decides; none where there is nothing to subtract."""
    metrics = dict.fromkeys((QUALITY, primary_metric))
    result: list[Effect] = []
    for kind, group, other, names in _pairs(all_settings):
        result += [_effect(kind, group, other, names, metric, confidence) for metric in metrics]
    return result


def _pairs(all_settings: Sequence[Setting]) -> Iterator[tuple[Kind, Group, Group, tuple[str, str]]]:
    """Yield (kind, one, other, their names): first what models add, then what runtimes do, then chance."""
    every = [group for groups in all_settings for group in groups]
    for group in every:
        plain = _random(every, group) if group.scope.sampler not in NOT_MODELS else None
        if plain is not None:
            yield "algorithm", group, plain, (f"{group.label} {setting_text(group)}", SAMPLER)
    for groups in all_settings:
        pool = next(
            (
                candidate
                for candidate in groups
                if not candidate.emulated and candidate.adapter == POOL and candidate.replicate == 0
            ),
            None,
        )
        if pool is not None and pool.scope.sampler == SAMPLER:
            for group in groups:
                if group is not pool and group.replicate == 0:
                    yield "runtime", group, pool, (f"{group.label} {setting_text(group)}", pool.label)
    for groups in all_settings:
        for again, first in noise_pairs(groups):
            yield "noise floor", again, first, (f"{again.label} {setting_text(again)}", first.label)


def _random(every: Sequence[Group], group: Group) -> Group | None:
    """Return the group of the same entry, pruner and variant with random search."""
    key = (group.label, group.scope.pruner, variant_text(group.spec.experiment.variant))
    same = (other for other in every if (other.label, other.scope.pruner, variant_text(other.spec.experiment.variant)) == key)
    return next((other for other in same if other.scope.sampler == SAMPLER), None)


def _effect(kind: Kind, group: Group, other: Group, names: tuple[str, str], metric: str, confidence: float) -> Effect:
    units = (run.metrics[metric].unit for side in (group, other) for run in side.done.values() if metric in run.metrics)
    bare = Effect(kind=kind, one=names[0], other=names[1], metric=metric, unit=next(units, ""))
    if group.emulated or other.emulated:
        return replace(bare, reason=EMULATED)
    paired = differences(group, other, metric)
    mean = mean_interval(paired.values, confidence, paired.scale) if paired.lacking is None else None
    return replace(bare, interval=mean, reason=paired.lacking, failures=paired.failures)
