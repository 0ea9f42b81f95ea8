"""The live state of a matrix at a moment, and how long the rest of it will take, by what ended before.

Terminal, text, JSON and page show this, and compute nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import NamedTuple

from tuneoff.experiment.plan import PlannedRun
from tuneoff.record.run_record import FAILED, RunRecord
from tuneoff.run.progress import LiveRun
from tuneoff.run.run_ends import UNFINISHED


class Activity(StrEnum):
    """Whether anybody works in the folder."""

    WORKING = "working"
    FINISHED = "finished"  # every planned run has ended
    STOPPED = "stopped"  # runs are left, and nobody works there any more
    ELSEWHERE = "elsewhere"  # begun on another host, so it cannot be told from here


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedCell:
    """One planned run. `status` is one of `STATUSES`; `reason`: why it is not done."""

    run_id: str
    name: str
    seed: int
    status: str
    reason: str | None = None
    seconds: float | None = None  # how long it took; None: not known


class SoFar(NamedTuple):
    """What the runs of a framework came to: the median job time, infinite where most failed, and the best validation value."""

    label: str
    seconds: float | None
    best: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedRow:
    """The runs of an adapter with one sampler, pruner and variant, by seed; None where none is planned with that seed."""

    text: str
    adapter: str
    cells: tuple[SeedCell | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """The run that runs now. `position`: from 1, among all runs of the plan or of the command, warm-ups included."""

    run_id: str
    execution_id: str
    name: str
    position: int
    total: int
    metric: str
    live: LiveRun


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveState:
    """A matrix at a moment. Warm-ups, and runs that are the same as others, are in no row and no count."""

    name: str
    plan_id: str
    folder: str
    file: str  # the experiment file, as the plan names it
    resume_command: str
    activity: Activity
    seeds: tuple[int, ...]
    rows: tuple[SeedRow, ...]
    counts: Mapping[str, int]  # by status, in the order of `STATUSES`, none left out
    current: Current | None = None
    seconds_left: float | None = None  # in all; None: it cannot be told yet
    pid: int | None = None  # of the command that took the folder last
    host: str | None = None  # where it works, if that is not this one
    problems: tuple[str, ...] = ()  # what could not be read
    so_far: tuple[SoFar, ...] = ()  # in the file's order

    @property
    def total(self) -> int:
        """How many runs there are to run; skipped ones are none of them."""
        return sum(self.counts.values()) - self.counts["skipped"]

    @property
    def ended(self) -> int:
        """How many runs came to an end that stays."""
        return self.total - sum(self.counts[status] for status in UNFINISHED)

    @property
    def failures(self) -> tuple[SeedCell, ...]:
        """The runs that failed or timed out, in the order of the rows."""
        return tuple(cell for cell in cells_of(self.rows) if cell.status in FAILED)

    @property
    def exit_code(self) -> int | None:
        """0: all done, 1: with failures, 130: runs are left; None while it is at work. As `tuneoff compare` ends."""
        if self.activity in (Activity.WORKING, Activity.ELSEWHERE):
            return None
        if any(self.counts[status] for status in UNFINISHED):
            return 130
        return 1 if any(self.counts[status] for status in FAILED) else 0


def cells_of(rows: Iterable[SeedRow]) -> list[SeedCell]:
    """Return the cells of all rows."""
    return [cell for row in rows for cell in row.cells if cell is not None]


class RuntimeEstimator:
    """Tells a run's likely seconds: the mean of its own cell, else of its framework, else its warm-up's, else of all runs.

    A warm-up has fewer trials: its trial step counts as often as they go into the trials of a run.
    """

    def __init__(self, runs: Sequence[PlannedRun]) -> None:
        trials = {run.label: run.spec.experiment.budget.trials for run in runs if not run.spec.warm_up}
        self._keys: dict[str, tuple[tuple[str, ...], ...]] = {}
        self._times: dict[str, float] = {}  # by a warm-up's id
        for run in runs:
            warm_up, framework = ("warm-up", run.label), ("framework", run.label)
            self._keys[run.run_id] = (("cell", run.label, run.spec.scope_key()), framework, warm_up, ("all",))
            if run.spec.warm_up:
                self._keys[run.run_id] = (warm_up,)
                self._times[run.run_id] = trials.get(run.label, 1) / run.spec.experiment.budget.trials

    def taken(self, record: RunRecord) -> float | None:
        """Return how long an execution took, from deploy to the end of its last step; a warm-up: as a run would have."""
        ends = [step.ended_ns for step in record.steps if step.ended_ns is not None]
        if not ends:
            return None
        trial_ns = sum(step.ended_ns - step.started_ns for step in record.steps if step.step == "trial" and step.ended_ns)
        return (max(ends) + (self._times.get(record.run_id, 1.0) - 1.0) * trial_ns) / 1e9

    def seconds(self, to_come: Iterable[str], took: Mapping[str, float], live: LiveRun | None) -> float | None:
        """Return the seconds left; None until they can be told.

        `to_come`: ids of the runs after the current one. `took`: seconds by run id, as `taken` has them. `live`: the current one.
        """
        times: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for run_id, seconds in took.items():
            for key in self._keys.get(run_id, ()):
                times[key].append(seconds)

        def likely(run_id: str) -> float | None:
            return next((fmean(times[key]) for key in self._keys.get(run_id, ()) if key in times), None)

        parts = [likely(run_id) for run_id in to_come]
        if live is not None:
            whole = likely(live.run_id) if live.seconds_left is None else None
            parts.append(live.seconds_left if whole is None else max(0.0, whole - live.seconds))
        seconds_left = [part for part in parts if part is not None]
        return sum(seconds_left) if len(seconds_left) == len(parts) else None
