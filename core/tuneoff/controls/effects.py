"""Algorithm effect, runtime effect and noise floor: three differences of the same metrics, each paired by seed.

Algorithm: a model-based sampler minus random search, in the same adapter. Runtime: random search in an adapter minus random
search in the plain pool, so the same algorithm. Noise floor: a repetition of an entry minus its first (A/A).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tuneoff.controls.cells import EMULATED, POOL, Cell, Setting, noise_pairs
from tuneoff.controls.same_algorithm import FEWEST_SEEDS, QUALITY, SAMPLER, differences
from tuneoff.controls.statistics import Interval, interval

Kind = Literal["algorithm", "runtime", "noise floor"]
NOT_MODELS = (SAMPLER, "fixed", "grid")


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


def effects(all_settings: Sequence[Setting], primary_metric: str, confidence: float) -> list[Effect]:
    """Return the effects on the selected quality and on the metric that decides; none where there is nothing to subtract."""
    metrics = dict.fromkeys((QUALITY, primary_metric))
    found: list[Effect] = []
    for kind, one, other, names in _pairs(all_settings):
        found += [_effect(kind, one, other, names, metric, confidence) for metric in metrics]
    return found


def is_subtractable(all_settings: Sequence[Setting]) -> bool:
    """Whether there are two cells that are in comparisons and whose difference is an effect."""
    return any(not (one.emulated or other.emulated) for _, one, other, _ in _pairs(all_settings))


def _pairs(all_settings: Sequence[Setting]) -> Iterator[tuple[Kind, Cell, Cell, tuple[str, str]]]:
    """Yield (kind, one, other, their names): first what models add, then what runtimes do, then chance."""
    for setting in all_settings:
        if setting.sampler not in NOT_MODELS:
            for cell in setting.cells:
                plain = _random(all_settings, setting, cell)
                if plain is not None:
                    yield "algorithm", cell, plain, (f"{cell.label} {setting.name}", SAMPLER)
    for setting in all_settings:
        pool = next((one for one in setting.compared if one.spec.adapter == POOL and one.replicate == 0), None)
        if setting.sampler == SAMPLER and pool is not None:
            for cell in setting.cells:
                if cell is not pool and cell.replicate == 0:
                    yield "runtime", cell, pool, (f"{cell.label} {setting.name}", pool.label)
    for setting in all_settings:
        for first, again in noise_pairs(setting):
            yield "noise floor", again, first, (f"{again.label} {setting.name}", first.label)


def _random(all_settings: Sequence[Setting], setting: Setting, cell: Cell) -> Cell | None:
    """Return the cell of the same entry, pruner and variant with random search."""
    for other in all_settings:
        if other.sampler == SAMPLER and (other.pruner, other.variant) == (setting.pruner, setting.variant):
            return next((one for one in other.cells if one.label == cell.label), None)
    return None


def _effect(kind: Kind, one: Cell, other: Cell, names: tuple[str, str], metric: str, confidence: float) -> Effect:
    units = (run.metrics[metric].unit for cell in (one, other) for run in cell.runs.values() if metric in run.metrics)
    bare = Effect(kind=kind, one=names[0], other=names[1], metric=metric, unit=next(units, ""))
    if one.emulated or other.emulated:
        return _without(bare, EMULATED)
    found = differences(one, other, metric)
    if len(found.values) < FEWEST_SEEDS:
        return _without(bare, f"{metric} in both of {len(found.values)} seeds, fewer than {FEWEST_SEEDS}")
    return replace(bare, interval=interval(found.values, confidence, found.scale))


def _without(effect: Effect, reason: str) -> Effect:
    return replace(effect, reason=reason)
