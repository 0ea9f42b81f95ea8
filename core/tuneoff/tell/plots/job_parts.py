"""Where the time of a job goes: the parts of the run in the middle, which add up to the median that the table has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

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


class JobPart(NamedTuple):
    """A part of a bar, by its name and in words: `start` and `width` are shares of the longest bar."""

    name: str
    text: str
    seconds: float
    start: float
    width: float


class Bar(NamedTuple):
    """A framework's job. `seconds`: the median job time; `seeds`: the runs in the middle, of which the parts are."""

    row: Row
    seconds: float
    seeds: tuple[int, ...]
    parts: tuple[JobPart, ...]
    end: float  # where it ends, as a share of the longest


def bars(rows: Sequence[Row], scope: str, time: Question) -> list[Bar]:
    """Return a bar per row that has runs with all parts in this column."""
    jobs = [(row, job) for row in rows if scope in row.columns and (job := _job(row.columns[scope].group, time)) is not None]
    longest = max((sum(parts.values()) for _, (_, _, parts) in jobs), default=0.0) or 1.0
    row_bars = []
    for row, (seconds, seeds, parts) in jobs:
        placed, at = [], 0.0
        for name, part_seconds in parts.items():
            placed.append(JobPart(name, TEXTS.get(name, name), part_seconds, at / longest, part_seconds / longest))
            at += part_seconds
        row_bars.append(Bar(row, seconds, seeds, tuple(placed), at / longest))
    return row_bars


def _job(group: Group, time: Question) -> tuple[float, tuple[int, ...], dict[str, float]] | None:
    """Return the job time of the one or two runs in the middle, their seeds and their mean parts, in s; None without one."""
    times = group.estimate(time.metric).by_seed
    measured = [(milliseconds, seed) for seed, milliseconds in times.items()]
    ordered = sorted([*measured, *((math.inf, run.seed) for run in group.runs if run.is_failure)])
    if not ordered:
        return None
    pair = {ordered[(len(ordered) - 1) // 2][1], ordered[len(ordered) // 2][1]}
    of_runs = [parts for seed in pair if (parts := _parts(group, seed)) is not None]
    if len(of_runs) < len(pair):  # one failed, or lacks a part
        return None
    seconds = sum(times[seed] for seed in pair) / len(pair) / MILLISECONDS
    return seconds, tuple(sorted(pair)), {name: sum(parts[name] for parts in of_runs) / len(of_runs) for name in PARTS}


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
