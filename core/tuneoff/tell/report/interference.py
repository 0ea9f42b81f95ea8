"""Interference: what the same configurations cost under a framework, over the plain pool of the `serial` adapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tuneoff.base.format import MISSING, counted, number
from tuneoff.base.identity import canonical_json, digest
from tuneoff.experiment.names import variant_text
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
    variant: str = ""
    excluded: str = ""
    wall: Sequence[float] = ()
    cpu: Sequence[float] = ()
    pairs: int = 0
    unequal: int = 0  # pairs left out: their metrics were not equal bit for bit, so they are not the same work
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class _Work:
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
            by_label = by_variant.setdefault(variant_text(group.spec.experiment.variant), {})
            works = by_label.setdefault(group.label, (group, {}))[1]
            for seed, trial in ((seed, trial) for seed, run in group.done.items() for trial in run.trials):
                # One that was trained to its end at once: a retry trains some epochs twice.
                if trial.state != "completed" or len(trial.attempts) != 1:
                    continue
                (attempt,) = trial.attempts
                metrics: list[Mapping[str, Any]] = [epoch.metrics for epoch in attempt.epochs]
                used = busy_cpu(attempt)
                work = _Work(digest(canonical_json(metrics)), busy_ns(attempt), used[0] if used is not None else None)
                works.setdefault((seed, trial.digest), []).append(work)
    outcomes = []
    for variant, by_label in by_variant.items():
        pool = by_label.pop(POOL, None)
        outcomes += [_result(variant, group, works, pool[1] if pool is not None else None) for group, works in by_label.values()]
    return outcomes


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
    about = {"unit": "ratio", "kind": "derived", "source": source, "coverage": None}
    if not ratios:
        return {"value": None, "low": None, "high": None, "n_samples": 0, "reason_if_null": reason, **about}
    values = {"value": middle(ratios), "low": min(ratios), "high": max(ratios), "n_samples": len(ratios)}
    return {**values, "reason_if_null": None, **about}


def _line(result: Interference) -> str:
    name = result.label + (f" {result.variant}" if result.variant else "")
    if not result.wall:
        return f"{name}: {MISSING} ({result.reason or NO_TIME})"
    cpu = f"CPU time {_range(result.cpu)}" if result.cpu else f"CPU time {MISSING}"
    left_out = f"; {result.unequal} more differ in their metrics" if result.unequal else ""
    return f"{name}: busy time {_range(result.wall)}, {cpu}, {counted(result.pairs, 'pair')}{left_out}"


def _range(ratios: Sequence[float]) -> str:
    return f"{number(middle(ratios))} ({number(min(ratios))}–{number(max(ratios))})"


def _result(variant: str, group: Group, works: _Works, pool: _Works | None) -> Interference:
    unknown = Interference(label=group.label, variant=variant, excluded=group.excluded)
    if group.excluded:
        return replace(unknown, reason=EXCLUDED)
    if pool is None:
        return replace(unknown, reason=f"no run of {POOL} with {SAMPLER} is done")
    pairs = [pair for key, trials in works.items() for pair in zip(trials, pool.get(key, ()), strict=False)]
    equal = [(work, other) for work, other in pairs if work.bits == other.bits]
    if not equal:
        reason = "no configuration was trained to its end by both in one seed"
        if pairs:
            reason = f"the metrics of all {len(pairs)} pairs differ: it is not the same work"
        return replace(unknown, unequal=len(pairs), reason=reason)
    return replace(
        unknown,
        wall=[work.busy_ns / other.busy_ns for work, other in equal if other.busy_ns],
        cpu=[work.cpu_ns / other.cpu_ns for work, other in equal if work.cpu_ns is not None and other.cpu_ns],
        pairs=len(equal),
        unequal=len(pairs) - len(equal),
    )
