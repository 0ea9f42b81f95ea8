"""The live state of a matrix at a moment, with its map and how long the rest will take, by what ended before.

Terminal, text, JSON and page show this, and compute nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tuneoff.experiment.names import cell_name, emulated_label, label_texts, run_name
from tuneoff.experiment.plan import Plan, PlannedRun
from tuneoff.judge.results import in_file_order
from tuneoff.judge.runs import run_of
from tuneoff.judge.summary_rows import came_to
from tuneoff.record.run_ends import UNFINISHED
from tuneoff.record.run_record import FAILED, RunRecord
from tuneoff.run.progress import LiveRun

STATUSES = ("done", "failed", "timeout", "interrupted", "skipped", "running", "planned")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SoFar:
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
    """The run that runs now. `position`: its place among all runs of the plan, warm-ups included, from 1."""

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


def cells_of(rows: Sequence[SeedRow]) -> list[SeedCell]:
    """Return the cells of all rows."""
    return [cell for row in rows for cell in row.cells if cell is not None]


def counted_statuses(rows: Sequence[SeedRow]) -> dict[str, int]:
    """Return the number of runs by status, in the order of `STATUSES`."""
    found = Counter(cell.status for cell in cells_of(rows))
    return {status: found[status] for status in STATUSES}


class Ended(NamedTuple):
    """What a run came to."""

    status: str
    reason: str | None = None
    seconds: float | None = None


class Grid:
    """The rows of a plan in the file's order. `names`: of each run, as progress has them, warm-ups included."""

    def __init__(self, plan: Plan) -> None:
        labels = label_texts((run.label, run.spec.adapter) for run in plan.runs)
        shown = {
            run.run_id: emulated_label(labels[run.label], run.spec) if run.emulated else labels[run.label] for run in plan.runs
        }
        self.names = {run.run_id: run_name(shown[run.run_id], run.spec) for run in plan.runs}
        self.seeds = plan.seeds
        self._skipped = {run.run_id: run.skip_reason for run in plan.counted if run.skip_reason is not None}
        self._frameworks: dict[str, list[PlannedRun]] = {}  # by label
        rows: dict[tuple[str, str], tuple[str, str, dict[int, str]]] = {}  # text, adapter, run id by seed
        for run in in_file_order(plan):
            if run.same_as is not None:
                continue
            text = cell_name(shown[run.run_id], run.spec.experiment)
            row = rows.setdefault((run.label, run.spec.scope_key()), (text, shown[run.run_id], {}))
            row[2][run.spec.seed] = run.run_id
            self._frameworks.setdefault(shown[run.run_id], []).append(run)
        self._rows = list(rows.values())

    def so_far(self, records: Mapping[str, RunRecord]) -> tuple[SoFar, ...]:
        """Return what the frameworks came to of which a run is done."""
        found = ((label, came_to([run_of(run, records, {}) for run in runs])) for label, runs in self._frameworks.items())
        return tuple(SoFar(label=label, seconds=time, best=best) for label, (time, best) in found if (time, best) != (None, None))

    def rows(self, ended: Mapping[str, Ended], running: str | None) -> tuple[SeedRow, ...]:
        """Return the rows with what each run came to. `running`: the run that runs now."""

        def cell(run_id: str, seed: int) -> SeedCell:
            if run_id == running:
                end = Ended("running")
            elif run_id in self._skipped:
                end = Ended("skipped", self._skipped[run_id])
            else:
                end = ended.get(run_id, Ended("planned"))
            name = self.names[run_id]
            return SeedCell(run_id=run_id, name=name, seed=seed, status=end.status, reason=end.reason, seconds=end.seconds)

        return tuple(
            SeedRow(
                text=text,
                adapter=adapter,
                cells=tuple(cell(by_seed[seed], seed) if seed in by_seed else None for seed in self.seeds),
            )
            for text, adapter, by_seed in self._rows
        )


class Estimate:
    """Tells a run's likely seconds: the mean of its own cell, else of its framework, else its warm-up's, else of all runs.

    A warm-up has fewer trials: its trial step counts as often as they go into the trials of a run.
    """

    def __init__(self, runs: Sequence[PlannedRun]) -> None:
        trials = {run.label: run.spec.experiment.budget.trials for run in runs if not run.spec.warm_up}
        self._keys: dict[str, tuple[tuple[str, ...], ...]] = {}
        self._times: dict[str, float] = {}  # by a warm-up's id
        for run in runs:
            if run.spec.warm_up:
                self._keys[run.run_id] = (("warm-up", run.label),)
                self._times[run.run_id] = trials.get(run.label, 1) / run.spec.experiment.budget.trials
            else:
                self._keys[run.run_id] = (
                    ("cell", run.label, run.spec.scope_key()),
                    ("framework", run.label),
                    ("warm-up", run.label),
                    ("all",),
                )

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
        sums: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
        for run_id, seconds in took.items():
            is_warm_up = run_id in self._times
            for key in self._keys.get(run_id, ()):
                if is_warm_up or key[0] != "warm-up":
                    sums[key][0] += seconds
                    sums[key][1] += 1

        def likely(run_id: str) -> float | None:
            found = next((sums[key] for key in self._keys.get(run_id, ()) if key in sums), None)
            return found[0] / found[1] if found is not None else None

        parts = [likely(run_id) for run_id in to_come]
        if live is not None:
            whole = likely(live.run_id) if live.seconds_left is None else None
            parts.append(live.seconds_left if whole is None else max(0.0, whole - live.seconds))
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None
