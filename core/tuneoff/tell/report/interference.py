"""Interference: what the same configurations cost under a framework, over the plain pool of the `serial` adapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tuneoff.base.format import MISSING, counted, number
from tuneoff.base.identity import canonical_json, digest
from tuneoff.judge.groups import Group, grouped
from tuneoff.judge.results import EXCLUDED, POOL, Results
from tuneoff.judge.stats.location import middle
from tuneoff.measure.spans import busy_ns
from tuneoff.measure.use import busy_cpu

SAMPLER = "fixed"
NO_TIME = "no configuration was busy for a measurable time"
NO_CPU = "no trial reported its CPU time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interference:
    """Ratios of an adapter's busy wall and CPU seconds per configuration to the pool's; none with a `reason`."""

    label: str
    variant: str
    excluded: str
    wall: Sequence[float]
    cpu: Sequence[float]
    pairs: int
    unequal: int  # pairs left out: their metrics were not equal bit for bit, so they are not the same work
    reason: str | None


class _Work(NamedTuple):
    """A completed trial: its metrics as a digest, and what it used, in ns."""

    bits: str
    busy_ns: int
    cpu_ns: int | None


_Works = dict[tuple[int, str], list[_Work]]  # by seed and configuration


def interference(results: Results) -> list[Interference]:
    """Return one result per adapter and variant of runs with `sampler: fixed`; empty without such runs of several adapters.

    A pair is one configuration in runs of one seed, trained to its end in one attempt by both, with equal metrics in every
    epoch. Medians with least and greatest ratio.
    """
    by_variant: dict[str, dict[str, tuple[Group, _Works]]] = {}
    for group in grouped(results):
        if group.scope.sampler == SAMPLER and group.done:
            _, works = by_variant.setdefault(group.variant, {}).setdefault(group.label, (group, {}))
            for seed, trial in ((seed, trial) for seed, run in group.done.items() for trial in run.trials):
                if trial.state == "completed" and len(trial.attempts) == 1:  # a retry trains some epochs twice
                    (attempt,) = trial.attempts
                    metrics: list[Mapping[str, Any]] = [epoch.metrics for epoch in attempt.epochs]
                    used = busy_cpu(attempt)
                    work = _Work(digest(canonical_json(metrics)), busy_ns(attempt), used[0] if used is not None else None)
                    works.setdefault((seed, trial.digest), []).append(work)
    return [
        _result(variant, group, works, by_label.get(POOL, (group, None))[1])
        for variant, by_label in by_variant.items()
        for label, (group, works) in by_label.items()
        if label != POOL
    ]


def interference_lines(results: Sequence[Interference]) -> list[str]:
    """Return the lines below the table; nothing without results."""
    if not results:
        return []
    title = f"Interference (sampler {SAMPLER}): times of a configuration over those in {POOL}, medians (lowest–highest):"
    return [title, *(f"  {_line(result)}" for result in results)]


def interference_json(results: Sequence[Interference]) -> list[dict[str, Any]]:
    """Return the ratios as JSON values, each with its unit, kind, source, number of pairs, or why there is none."""
    return [
        {
            "label": result.label,
            "variant": result.variant,
            "excluded": result.excluded,
            "unequal": result.unequal,
            "busy_wall": _ratio(result.wall, result.reason or NO_TIME),
            "busy_cpu": _ratio(result.cpu, result.reason or NO_CPU),
        }
        for result in results
    ]


def _ratio(ratios: Sequence[float], reason: str) -> dict[str, Any]:
    source = f"events of both, per configuration over {POOL}"
    return {
        "value": middle(ratios) if ratios else None,
        "low": min(ratios, default=None),
        "high": max(ratios, default=None),
        "n_samples": len(ratios),
        "reason_if_null": None if ratios else reason,
        "unit": "ratio",
        "kind": "derived",
        "source": source,
        "coverage": None,
    }


def _line(result: Interference) -> str:
    name = f"{result.label} {result.variant}".rstrip()
    if not result.wall:
        return f"{name}: {MISSING} ({result.reason or NO_TIME})"
    cpu = f"CPU time {_range(result.cpu)}" if result.cpu else f"CPU time {MISSING}"
    left_out = f"; {result.unequal} more differ in their metrics" if result.unequal else ""
    return f"{name}: busy time {_range(result.wall)}, {cpu}, {counted(result.pairs, 'pair')}{left_out}"


def _range(ratios: Sequence[float]) -> str:
    return f"{number(middle(ratios))} ({number(min(ratios))}–{number(max(ratios))})"


def _result(variant: str, group: Group, works: _Works, pool: _Works | None) -> Interference:
    pairs = [pair for key, trials in works.items() for pair in zip(trials, (pool or {}).get(key, ()), strict=False)]
    equal = [(work, other) for work, other in pairs if work.bits == other.bits]
    reason = None
    if group.excluded:
        reason = EXCLUDED
    elif pool is None:
        reason = f"no run of {POOL} with {SAMPLER} is done"
    elif not pairs:
        reason = "no configuration was trained to its end by both in one seed"
    elif not equal:
        reason = f"the metrics of all {len(pairs)} pairs differ: it is not the same work"
    compared = [] if reason is not None else equal
    return Interference(
        label=group.label,
        variant=variant,
        excluded=group.excluded,
        wall=[work.busy_ns / other.busy_ns for work, other in compared if other.busy_ns],
        cpu=[work.cpu_ns / other.cpu_ns for work, other in compared if work.cpu_ns is not None and other.cpu_ns],
        pairs=len(compared),
        unequal=0 if group.excluded else len(pairs) - len(equal),
        reason=reason,
    )
