"""Where the time of a job goes: the parts of the run in the middle, which add up to the median that the table has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tuneoff.base.clock import MILLISECONDS
from tuneoff.judge.answers.answer import Question
from tuneoff.judge.choice.choice import Row
from tuneoff.judge.groups import Group

PARTS = {  # by the name of its colour
    "start": ("time.deploy", "time.setup"),
    "training": ("time.trial",),
    "waiting": ("time.trial",),
    "stop": ("time.result_collection", "time.metric_collection", "time.undeploy"),
    "test": ("time.test",),
}
TEXTS = {"waiting": "waiting for the framework"}
TRAINED = "slots.utilization"  # % of the trials' span in which the workers trained


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPart:
    """A part of a bar: `start` and `width` are shares of the longest bar."""

    name: str
    seconds: float
    start: float
    width: float

    @property
    def text(self) -> str:
        """What it is, in words."""
        return TEXTS.get(self.name, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A framework's job. `seconds`: the median job time; `seeds`: the runs in the middle, of which the parts are."""

    row: Row
    seconds: float
    seeds: tuple[int, ...]
    parts: tuple[JobPart, ...]

    @property
    def end(self) -> float:
        """Where the bar ends."""
        return max((part.start + part.width for part in self.parts), default=0.0)


def bars(rows: Sequence[Row], scope: str, time: Question) -> list[Bar]:
    """Return a bar per row that has runs with all parts in this column."""
    jobs = []
    for row in rows:
        group = row.columns[scope].group if scope in row.columns else None
        middle = _middle(group, time) if group is not None else ()
        if group is not None and middle:
            times = group.estimate(time.metric).by_seed
            seconds = sum(times[seed] for seed in middle) / len(middle) / MILLISECONDS
            of_runs = [parts for seed in middle if (parts := _parts(group, seed)) is not None]
            parts = {name: sum(parts[name] for parts in of_runs) / len(of_runs) for name in PARTS}
            jobs.append((row, seconds, middle, parts))
    longest = max((sum(parts.values()) for *_, parts in jobs), default=0.0) or 1.0
    row_bars = []
    for row, seconds, seeds, parts in jobs:
        placed, at = [], 0.0
        for name, part_seconds in parts.items():
            placed.append(JobPart(name=name, seconds=part_seconds, start=at / longest, width=part_seconds / longest))
            at += part_seconds
        row_bars.append(Bar(row=row, seconds=seconds, seeds=seeds, parts=tuple(placed)))
    return row_bars


def _middle(group: Group, time: Question) -> tuple[int, ...]:
    """Return the seeds of the one or two runs in the middle by job time; none where one failed or lacks a part."""
    measured = [(milliseconds, seed) for seed, milliseconds in group.estimate(time.metric).by_seed.items()]
    ordered = sorted([*measured, *((math.inf, run.seed) for run in group.runs if run.is_failure)])
    if not ordered:
        return ()
    pair = {ordered[(len(ordered) - 1) // 2][1], ordered[len(ordered) // 2][1]}
    return tuple(sorted(pair)) if all(_parts(group, seed) is not None for seed in pair) else ()


def _parts(group: Group, seed: int) -> dict[str, float] | None:
    """Return the seconds of each part of a run; None where one is missing."""
    trained = group.estimate(TRAINED).by_seed.get(seed)
    totals = {name: [group.estimate(metric).by_seed.get(seed) for metric in metrics] for name, metrics in PARTS.items()}
    if trained is None or any(amount is None for of_part in totals.values() for amount in of_part):
        return None
    shares = {"training": trained / 100, "waiting": 1 - trained / 100}
    return {
        name: shares.get(name, 1.0) * sum(amount for amount in of_part if amount is not None) / MILLISECONDS
        for name, of_part in totals.items()
    }
