"""Runtimes to targets: how many trials and seconds it took until the incumbent was as good as a target on validation.

Targets are fixed before the runs where the plan froze anchors or a threshold. A run that never came there, or that failed, has
the runtime +inf: the ECDF of runtimes then never reaches 1, and what the run spent counts in the expected runtime (ERT).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuneoff.experiment.analysis_part import AnchorsPart
from tuneoff.judge.answers.analysis_plan import frozen
from tuneoff.judge.answers.anytime import Clock, Curve, curves, first_reach
from tuneoff.judge.results import Results
from tuneoff.judge.runs import Scope
from tuneoff.judge.stats.runtime import ecdf, ert

REGRETS = (1.0, 0.75, 0.5, 0.25, 0.1, 0.0)
SHARES = (0.25, 0.5, 0.75)
EXPLORATORY = "the plan froze neither anchors nor a threshold: the targets are of these results, so they are exploratory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A value on validation to be reached, and what it is: `regret 0.5`, `threshold`."""

    value: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """How one group's runs reached one target on one clock. `spent` of each run: until then, or in total without success."""

    target: Target
    clock: Clock
    runtimes: tuple[float, ...]  # by run, inf where it was not reached
    spent: tuple[float, ...]
    successes: int
    runs: int
    ert: float  # inf without a success


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtimes:
    """One group's runtimes to all targets of its scope. `note` says where the targets are from."""

    label: str
    scope: Scope
    replicate: int
    emulated: bool
    reached: tuple[Reached, ...]
    ecdf: Mapping[Clock, tuple[tuple[float, float], ...]]  # over all targets and runs: (runtime, share), right-continuous
    note: str


def runtimes(results: Results, found: Sequence[Curve] | None = None) -> list[Runtimes]:
    """Return the runtimes of every group that has a run that ended, by scope; `found`: the curves, where they are known."""
    plan = frozen(results.plan.analysis)
    by_scope: dict[Scope, dict[str, list[Curve]]] = {}
    for curve in curves(results) if found is None else found:
        by_scope.setdefault(curve.scope, {}).setdefault(curve.label, []).append(curve)
    made = []
    for scope, groups in by_scope.items():
        every = [curve for of in groups.values() for curve in of]
        asked, note = targets(every, plan.anchors.get(scope.task), _threshold(results, every[0]))
        made += [_of(of, asked, note) for of in groups.values()]
    return made


def targets(found: Sequence[Curve], anchors: AnchorsPart | None, threshold: float | None) -> tuple[list[Target], str]:
    """Return the targets of a scope, the easiest first, and where they are from."""
    mode = found[0].mode
    asked: list[Target] = []
    note = ""
    if anchors is not None:
        span = anchors.best_known - anchors.random_search
        asked = [Target(value=anchors.best_known - regret * span, text=f"regret {regret:g}") for regret in REGRETS]
        note = f"anchors: {anchors.source}"
    if threshold is not None:
        asked.append(Target(value=threshold, text="threshold"))
        note = note or "the objective's threshold"
    if not asked:
        last = sorted(curve.steps[-1].value for curve in found if curve.steps and not curve.emulated)
        if last:
            ordered = last if mode == "max" else last[::-1]
            asked = [Target(value=ordered[int(share * (len(ordered) - 1))], text=f"quantile {share:g}") for share in SHARES]
        note = EXPLORATORY
    return sorted(asked, key=lambda one: one.value if mode == "max" else -one.value), note


def _of(found: Sequence[Curve], asked: Sequence[Target], note: str) -> Runtimes:
    first = found[0]
    clocks: tuple[Clock, ...] = ("trials", "seconds")
    reached = [_reached(found, target, clock) for clock in clocks for target in asked]
    return Runtimes(
        label=first.label,
        scope=first.scope,
        replicate=first.replicate,
        emulated=first.emulated,
        reached=tuple(one for one in reached if one.runs),
        ecdf={clock: _ecdf([one for one in reached if one.clock == clock]) for clock in clocks},
        note=note,
    )


def _reached(found: Sequence[Curve], target: Target, clock: Clock) -> Reached:
    """Return how the runs that have this clock reached a target; a run that failed without any trial spent nothing on it."""
    there = [curve for curve in found if clock in curve.ends]
    times = [first_reach(curve, clock, target.value) if curve.status == "done" else math.inf for curve in there]
    spent = [curve.ends[clock] if math.isinf(time) else time for curve, time in zip(there, times, strict=True)]
    lacking = [curve for curve in found if clock not in curve.ends and curve.status != "done"]
    times += [math.inf] * len(lacking)
    spent += [0.0] * len(lacking)
    is_reached = [math.isfinite(time) for time in times]
    return Reached(
        target=target,
        clock=clock,
        runtimes=tuple(times),
        spent=tuple(spent),
        successes=sum(is_reached),
        runs=len(times),
        ert=ert(spent, is_reached) if times else math.inf,
    )


def _ecdf(reached: Sequence[Reached]) -> tuple[tuple[float, float], ...]:
    total = sum(one.runs for one in reached)
    return ecdf([time for one in reached for time in one.runtimes], total) if total else ()


def _threshold(results: Results, curve: Curve) -> float | None:
    run = next((run for run in results.planned if run.run_id == curve.run_id), None)
    return run.spec.experiment.objective.threshold if run is not None else None
