"""All controls of a results folder, with algorithm effect, runtime effect and noise floor: three differences, paired by seed.

Algorithm: a model-based sampler minus random search, in the same adapter. Runtime: random search in an adapter minus random
search in the plain pool, so the same algorithm. Noise floor: a repetition of an entry minus its first (A/A).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tuneoff.base.packages import need_scipy
from tuneoff.errors import MissingPackageError
from tuneoff.experiment.matrix_parts import AnalysisPart
from tuneoff.judge.answers.analysis_plan import frozen
from tuneoff.judge.controls.same_algorithm import (
    FEWEST_SEEDS,
    QUALITY,
    SAMPLER,
    EntryPair,
    MeanInterval,
    comparable,
    differences,
    differing_pairs,
    interval,
    pairs_of,
)
from tuneoff.judge.controls.same_configuration import Equality, SameConfiguration, Setting, same_configurations, settings
from tuneoff.judge.results import Results
from tuneoff.judge.runs import EMULATED, POOL, Group, grouped, noise_pairs

_DEFAULTS = AnalysisPart()
Kind = Literal["algorithm", "runtime", "noise floor"]
NOT_MODELS = (SAMPLER, "fixed", "grid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """What the controls of a matrix say. `lacking`: why the statistical ones could not be made, where a package is missing."""

    same_configurations: tuple[SameConfiguration, ...] = ()
    pairs: tuple[EntryPair, ...] = ()
    effects: tuple[Effect, ...] = ()
    confidence: float = _DEFAULTS.confidence
    lacking: str | None = None

    @property
    def alpha(self) -> float:
        return 1 - self.confidence

    @property
    def is_empty(self) -> bool:
        """Whether the matrix has nothing that a control could compare."""
        return not (self.same_configurations or self.pairs or self.effects or self.lacking)

    @property
    def contradicts(self) -> bool:
        """Whether a control says that the adapters were not treated equally: unequal bits, or quality outside its margin."""
        different = any(one.answer is Equality.DIFFERENT for one in self.same_configurations)
        return different or bool(differing_pairs(self.pairs))


def controls(results: Results) -> Controls:
    """Return the controls of a matrix, by the analysis that its plan froze.

    Where scipy is missing, what needs it is left out and `lacking` says so.
    """
    analysis = results.plan.analysis
    plan = frozen(analysis)
    confidence = plan.confidence
    found = settings(grouped(results))
    same = tuple(same_configurations(found))
    if comparable(found) or is_subtractable(found):
        try:
            need_scipy("the comparison of scores and quality")
        except MissingPackageError as error:
            return Controls(same_configurations=same, confidence=confidence, lacking=str(error))
    return Controls(
        same_configurations=same,
        pairs=tuple(pairs_of(found, analysis, 1 - confidence)),
        effects=tuple(effects(found, plan.questions[plan.primary], confidence)),
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
    interval: MeanInterval | None = None
    reason: str | None = None


def effects(all_settings: Sequence[Setting], primary_metric: str, confidence: float) -> list[Effect]:
    """Return the effects on the selected quality and on the metric that decides; none where there is nothing to subtract."""
    metrics = dict.fromkeys((QUALITY, primary_metric))
    found: list[Effect] = []
    for kind, one, other, names in _pairs(all_settings):
        found += [_effect(kind, one, other, names, metric, confidence) for metric in metrics]
    return found


def is_subtractable(all_settings: Sequence[Setting]) -> bool:
    """Whether there are two groups that are in comparisons and whose difference is an effect."""
    return any(not (one.emulated or other.emulated) for _, one, other, _ in _pairs(all_settings))


def _pairs(all_settings: Sequence[Setting]) -> Iterator[tuple[Kind, Group, Group, tuple[str, str]]]:
    """Yield (kind, one, other, their names): first what models add, then what runtimes do, then chance."""
    for setting in all_settings:
        if setting.sampler not in NOT_MODELS:
            for group in setting.groups:
                plain = _random(all_settings, setting, group)
                if plain is not None:
                    yield "algorithm", group, plain, (f"{group.label} {setting.name}", SAMPLER)
    for setting in all_settings:
        pool = next((one for one in setting.compared if one.spec.adapter == POOL and one.spec.replicate == 0), None)
        if setting.sampler == SAMPLER and pool is not None:
            for group in setting.groups:
                if group is not pool and group.spec.replicate == 0:
                    yield "runtime", group, pool, (f"{group.label} {setting.name}", pool.label)
    for setting in all_settings:
        for again, first in noise_pairs(setting.groups):
            yield "noise floor", again, first, (f"{again.label} {setting.name}", first.label)


def _random(all_settings: Sequence[Setting], setting: Setting, group: Group) -> Group | None:
    """Return the group of the same entry, pruner and variant with random search."""
    for other in all_settings:
        if other.sampler == SAMPLER and (other.pruner, other.variant) == (setting.pruner, setting.variant):
            return next((one for one in other.groups if one.label == group.label), None)
    return None


def _effect(kind: Kind, one: Group, other: Group, names: tuple[str, str], metric: str, confidence: float) -> Effect:
    units = (run.metrics[metric].unit for group in (one, other) for run in group.done.values() if metric in run.metrics)
    bare = Effect(kind=kind, one=names[0], other=names[1], metric=metric, unit=next(units, ""))
    if one.emulated or other.emulated:
        return _without(bare, EMULATED)
    found = differences(one, other, metric)
    if len(found.values) < FEWEST_SEEDS:
        return _without(bare, f"{metric} in both of {len(found.values)} seeds, fewer than {FEWEST_SEEDS}")
    return replace(bare, interval=interval(found.values, confidence, found.scale))


def _without(effect: Effect, reason: str) -> Effect:
    return replace(effect, reason=reason)
