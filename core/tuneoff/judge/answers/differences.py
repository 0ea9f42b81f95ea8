"""Two cells by seed: what is subtracted, what a failed run means, which seeds a verdict rests on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tuneoff.base.format import counted
from tuneoff.judge.answers.answer import PairedDifference, Question, Value
from tuneoff.judge.answers.run_values import value
from tuneoff.judge.runs import Group, Run

BOTH_FAILED = "both failed: counted as no difference"
KINDS = "the kinds differ ({} and {}), and such values are never compared"
NO_RATIO = "a value that is not above 0 has no ratio"
Measure = Callable[[Run, str], Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeds:
    """The seeds that a verdict may use, and why it may not be made yet."""

    planned: tuple[int, ...]
    used: tuple[int, ...]
    waiting: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedDifferences:
    """Paired differences of two cells on a question's scale, one per planned seed."""

    seeds: Seeds
    differences: tuple[PairedDifference, ...]
    failures: tuple[int, int]  # of the used seeds
    scale: float  # the greatest size of what was subtracted
    excluded: str | None = None  # why no verdict can be made, whatever the values are

    @property
    def usable(self) -> tuple[PairedDifference, ...]:
        """The differences that a verdict rests on."""
        used = set(self.seeds.used)
        return tuple(one for one in self.differences if one.seed in used and one.difference is not None)

    @property
    def values(self) -> list[float]:
        return [one.difference for one in self.usable if one.difference is not None]


def seeds(one: Group, other: Group, looks: Sequence[int]) -> Seeds:
    """Return the seeds to judge by: all planned ones once they have ended, or those of the largest look that has."""
    ours, theirs = one.by_seed, other.by_seed
    planned = tuple(seed for seed in ours if seed in theirs)
    ended = tuple(seed for seed in planned if ours[seed].has_ended and theirs[seed].has_ended)
    if not looks:
        waiting = None
        if len(ended) < len(planned):
            waiting = f"{len(ended)} of {counted(len(planned), 'planned seed')} have ended in both"
        return Seeds(planned=planned, used=ended, waiting=waiting)
    reached = [look for look in looks if look <= len(planned) and set(planned[:look]) <= set(ended)]
    if reached:
        return Seeds(planned=planned, used=planned[: max(reached)])
    first = min(looks)
    if first > len(planned):
        waiting = f"the first look is at {counted(first, 'seed')}, and {len(planned)} are planned"
    else:
        there = len(set(planned[:first]) & set(ended))
        waiting = f"{there} of the {first} seeds of the first look have ended in both"
    return Seeds(planned=planned, used=ended, waiting=waiting)


def pair(one: Group, other: Group, question: Question, looks: Sequence[int], measure: Measure = value) -> SeedDifferences:
    """Return the paired differences of two cells; `measure` gives a run's value of the question's metric."""
    chosen = seeds(one, other, looks)
    used = set(chosen.used)
    ours, theirs = one.by_seed, other.by_seed
    rows, sizes, mixed = [], [0.0], None
    for seed in chosen.planned:
        row, size, kinds = _difference(ours[seed], theirs[seed], question, measure)
        if chosen.waiting is None and seed not in used and row.difference is not None:
            row = PairedDifference(
                seed=seed,
                one=row.one,
                other=row.other,
                difference=row.difference,
                reason=f"not used: the look is at {counted(len(used), 'seed')}",
            )
        rows.append(row)
        if seed in used:
            sizes.append(size)
            mixed = mixed or kinds
    failures = tuple(sum(runs[seed].has_failed for seed in used) for runs in (ours, theirs))
    return SeedDifferences(
        seeds=chosen,
        differences=tuple(rows),
        failures=(failures[0], failures[1]),
        scale=1.0 if question.scale == "ratio" else max(sizes),  # ln(a / b): its rounding is that of numbers around 1
        excluded=mixed or _without_ratio(rows, used),
    )


def _difference(one: Run, other: Run, question: Question, measure: Measure) -> tuple[PairedDifference, float, str | None]:
    """Return the difference of a seed, the size of what was subtracted, and the kinds where they forbid it."""
    seed = one.seed
    ours, theirs = measure(one, question.metric), measure(other, question.metric)

    def row(difference: float | None, reason: str | None) -> PairedDifference:
        return PairedDifference(seed=seed, one=ours.value, other=theirs.value, difference=difference, reason=reason)

    if not (one.has_ended and other.has_ended):
        waiting = " and ".join(
            f"{name} is {run.ref.status}" for name, run in (("one", one), ("other", other)) if not run.has_ended
        )
        return row(None, waiting), 0.0, None
    if one.has_failed and other.has_failed:
        return row(0.0, BOTH_FAILED), 0.0, None
    if one.has_failed or other.has_failed:
        present = theirs if one.has_failed else ours
        if present.value is None:
            return row(None, present.reason), 0.0, None
        losing = 1.0 if question.better == "min" else -1.0
        sign = losing if one.has_failed else -losing
        return row(sign * math.inf, f"{'one' if one.has_failed else 'other'} failed"), 0.0, None
    if ours.value is None or theirs.value is None:
        return row(None, ours.reason if ours.value is None else theirs.reason), 0.0, None
    if ours.kind != theirs.kind:
        kinds = KINDS.format(*sorted((str(ours.kind), str(theirs.kind))))
        return row(None, kinds), 0.0, kinds
    if question.scale == "difference":
        return row(ours.value - theirs.value, None), max(abs(ours.value), abs(theirs.value)), None
    if ours.value == theirs.value:
        return row(0.0, None), 1.0, None
    if min(ours.value, theirs.value) <= 0:
        return row(None, NO_RATIO), 0.0, None
    return row(math.log(ours.value / theirs.value), None), 1.0, None


def _without_ratio(rows: Sequence[PairedDifference], used: set[int]) -> str | None:
    without = sum(row.seed in used and row.reason == NO_RATIO for row in rows)
    return f"in {counted(without, 'seed')} {NO_RATIO}" if without else None
