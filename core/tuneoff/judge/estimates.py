"""A metric over the seeds of a group: a run that failed counts as worse than any that is done, in every table alike."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tuneoff.judge.answers.directions import better
from tuneoff.judge.answers.run_values import value
from tuneoff.judge.runs import Group, Run
from tuneoff.judge.stats.failures_as_infinity import middle
from tuneoff.record.metric_value import Kind


@dataclass(frozen=True, slots=True)
class Spread:
    """Median of `n` values and `failed` runs that are worse than any; lowest and highest of the values. ±inf: a failure."""

    median: float
    low: float
    high: float
    n: int
    failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One metric over the runs of a group: its spread, the kinds of its values, and why runs that are done have none."""

    spread: Spread | None
    unit: str
    kinds: frozenset[Kind] = frozenset()  # of the values that are there
    reasons: Mapping[str, int] = field(default_factory=dict)  # runs by why they have no value

    @property
    def is_estimated(self) -> bool:
        return "estimated" in self.kinds


def with_failures(values: Sequence[float], failed: int, direction: str) -> list[float]:
    """Return values and, for each run that failed, what is worse than any; nothing where there is no value."""
    return [*values, *[math.inf if direction == "min" else -math.inf] * failed] if values else []


def spread(values: Iterable[float | None], failed: int = 0, direction: str = "min") -> Spread | None:
    """Return the spread of the values that are there, or None; `direction`: which values are better, "min" or "max"."""
    known = [value for value in values if value is not None]
    numbers = with_failures(known, failed, direction)
    return Spread(middle(numbers), min(known), max(known), len(known), failed) if known else None


def figure(group: Group, metric: str) -> Figure:
    """Return a metric over a group's own runs."""
    objective = group.spec.experiment.objective
    direction = better(metric, objective.metric, objective.mode)
    done = [value(run, metric) for run in group.own if run.is_done]
    there = [one for one in done if one.value is not None]
    units = (found.unit for run in group.own if run.is_done and (found := run.metric(metric)) is not None)
    return Figure(
        spread=spread((one.value for one in there), failures(group.own), direction),
        unit=next(units, ""),
        kinds=frozenset(one.kind for one in there if one.kind is not None),
        reasons=dict(Counter(one.reason for one in done if one.reason is not None)),
    )


def failures(runs: Iterable[Run]) -> int:
    """Return how many of some runs failed or timed out."""
    return sum(run.has_failed for run in runs)
