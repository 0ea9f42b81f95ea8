"""Interference: what the same configurations cost under a framework, over the plain pool of the `serial` adapter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tuneoff.experiment.identity import canonical_json, digest
from tuneoff.experiment.names import emulated_label, variant_text
from tuneoff.metrics.segments import busy_ns
from tuneoff.metrics.use import busy_cpu
from tuneoff.records.model import RunRecord, TrialRecord
from tuneoff.records.store import selected
from tuneoff.report.figures import MISSING, number
from tuneoff.report.summary import Planned, Spread, spread
from tuneoff.words import counted

POOL = "serial"
SAMPLER = "fixed"
NO_TIME = "no configuration was busy for a measurable time"
NO_CPU = "no trial told its CPU time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interference:
    """Ratios of an adapter's busy wall and CPU seconds per configuration to the pool's; None with a `reason`."""

    label: str
    variant: str = ""
    emulated: bool = False
    wall: Spread | None = None
    cpu: Spread | None = None
    pairs: int = 0
    unequal: int = 0  # pairs left out: their metrics were not equal bit for bit, so they are not the same work
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class _Work:
    """A completed trial: its metrics as a digest, and what it used, in ns."""

    bits: str
    busy_ns: int
    cpu_ns: int | None


@dataclass(slots=True)
class _Group:
    """An adapter's trials by seed, replicate and configuration."""

    label: str
    variant: str
    emulated: bool = False
    works: dict[tuple[int, str], list[_Work]] = field(default_factory=dict)


def interference(records: Sequence[RunRecord], planned: Sequence[Planned] = ()) -> list[Interference]:
    """Return one result per adapter and variant of runs with `sampler: fixed`; empty without such runs of several adapters.

    A pair is one configuration in runs of one seed, trained to its end in one attempt by both, with equal metrics in every
    epoch. Medians with least and greatest ratio.
    """
    groups = _groups(records, planned)
    found = []
    for variant in dict.fromkeys(variant for variant, _ in groups):
        there = {label: group for (other, label), group in groups.items() if other == variant}
        pool = there.pop(POOL, None)
        found += [_result(group, pool) for group in there.values()] if there else []
    return found


def interference_lines(results: Sequence[Interference]) -> list[str]:
    """Return the lines below the table; nothing without results."""
    if not results:
        return []
    title = f"Interference (sampler {SAMPLER}): time per configuration over that of {POOL}, medians (least–greatest):"
    return [title, *(f"  {_line(one)}" for one in results)]


def interference_json(results: Sequence[Interference]) -> list[dict[str, Any]]:
    """Return the ratios as JSON values, each with its unit, kind, source, number of pairs, or why there is none."""
    return [
        {
            "label": one.label,
            "variant": one.variant,
            "emulated": one.emulated,
            "unequal": one.unequal,
            "busy_wall": _ratio(one.wall, one.reason or NO_TIME),
            "busy_cpu": _ratio(one.cpu, one.reason or NO_CPU),
        }
        for one in results
    ]


def _ratio(found: Spread | None, reason: str) -> dict[str, Any]:
    source = f"events of both, per configuration over {POOL}"
    about = {"unit": "ratio", "kind": "derived", "source": source, "coverage": None}
    if found is None:
        return {"value": None, "low": None, "high": None, "n_samples": 0, "reason_if_null": reason, **about}
    values = {"value": found.median, "low": found.low, "high": found.high, "n_samples": found.n}
    return {**values, "reason_if_null": None, **about}


def _line(one: Interference) -> str:
    name = one.label + (f" {one.variant}" if one.variant else "")
    if one.wall is None:
        return f"{name}: {MISSING} ({one.reason or NO_TIME})"
    cpu = f"CPU {_range(one.cpu)}" if one.cpu is not None else f"CPU {MISSING}"
    left_out = f"; {one.unequal} more differ in their metrics" if one.unequal else ""
    return f"{name}: busy wall {_range(one.wall)}, {cpu}, {counted(one.pairs, 'pair')}{left_out}"


def _range(found: Spread) -> str:
    return f"{number(found.median)} ({number(found.low)}–{number(found.high)})"


def _groups(records: Sequence[RunRecord], planned: Sequence[Planned]) -> dict[tuple[str, str], _Group]:
    labels = {run.run_id: run.label for run in planned}
    groups: dict[tuple[str, str], _Group] = {}
    for run in _in_order(selected(list(records)), planned):
        spec = run.run_spec()
        if spec.experiment.sampler.name != SAMPLER or spec.warm_up or run.status != "done" or run.continues is not None:
            continue
        label = labels.get(run.run_id, spec.adapter)
        shown = emulated_label(label, spec) if run.emulated else label
        variant = variant_text(spec.experiment.variant)
        group = groups.setdefault((variant, shown), _Group(shown, variant, run.emulated))
        for trial in run.trials:
            work = _work(trial)
            if work is not None:
                group.works.setdefault((spec.seed, trial.digest), []).append(work)
    return groups


def _in_order(records: Iterable[RunRecord], planned: Sequence[Planned]) -> list[RunRecord]:
    places = {run.run_id: place for place, run in enumerate(planned)}
    return sorted(records, key=lambda run: (places.get(run.run_id, len(places)), run.run_id))


def _work(trial: TrialRecord) -> _Work | None:
    """Return a trial that was trained to its end at once; else None: a retry trains some epochs twice."""
    if trial.state != "completed" or len(trial.attempts) != 1:
        return None
    attempt = trial.attempts[0]
    used = busy_cpu(attempt)
    metrics: list[Mapping[str, Any]] = [epoch.metrics for epoch in attempt.epochs]
    return _Work(digest(canonical_json(metrics)), busy_ns(attempt), used[0] if used is not None else None)


def _result(group: _Group, pool: _Group | None) -> Interference:
    unknown = Interference(label=group.label, variant=group.variant, emulated=group.emulated)
    if group.emulated:
        return replace(unknown, reason="emulated, so in no comparison")
    if pool is None:
        return replace(unknown, reason=f"no run of {POOL} with {SAMPLER} is done")
    pairs = list(_pairs(group, pool))
    equal = [(one, other) for one, other in pairs if one.bits == other.bits]
    if not equal:
        reason = "no configuration was trained to its end by both in one seed"
        if pairs:
            reason = f"the metrics of all {len(pairs)} pairs differ: it is not the same work"
        return replace(unknown, unequal=len(pairs), reason=reason)
    return replace(
        unknown,
        wall=spread(one.busy_ns / other.busy_ns for one, other in equal if other.busy_ns),
        cpu=spread(one.cpu_ns / other.cpu_ns for one, other in equal if one.cpu_ns is not None and other.cpu_ns),
        pairs=len(equal),
        unequal=len(pairs) - len(equal),
    )


def _pairs(group: _Group, pool: _Group) -> Iterator[tuple[_Work, _Work]]:
    for key, works in group.works.items():
        yield from zip(works, pool.works.get(key, ()), strict=False)
