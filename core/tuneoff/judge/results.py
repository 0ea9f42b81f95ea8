"""A results folder, read once for all that follows from it: its runs with how they ended, their metrics or why there are none."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tuneoff.base.format import counted
from tuneoff.base.json_values import plain
from tuneoff.base.layout import RUNS
from tuneoff.experiment.names import variant_text
from tuneoff.experiment.plan import Plan, PlannedRun
from tuneoff.experiment.spec import RunSpec
from tuneoff.experiment.variants import named
from tuneoff.measure.stored import read_runs
from tuneoff.measure.use import DISTURBED, SHARE
from tuneoff.record.metric_value import MetricValue, missing
from tuneoff.record.results_folder import read_plan
from tuneoff.record.run_record import FAILED, RunRecord
from tuneoff.record.store import selected_executions
from tuneoff.run.run_ends import RunEnd, Without, came_out, ends_of, without_record

POOL = "serial"  # the adapter that uses no framework: the reference of the others
EXCLUDED = "a flag of its runs keeps it out of every comparison"
ENDED = ("done", *FAILED)
NOT_BEGUN = "not run yet"
ABSENT = "its record has no such metric"
FEWEST_UNDISTURBED = 6  # pairs: with fewer no difference can be shown at 5 %


@dataclass(frozen=True, kw_only=True)  # without slots, for what is computed once
class Results:
    """The plan, every execution, and the one that stands for each run.

    `planned`: in the file's order, without warm-ups and of copies the first; `copies`: all copies of a run, by its id.
    """

    folder: Path
    plan: Plan
    planned: tuple[PlannedRun, ...]
    records: tuple[RunRecord, ...]
    selected: Mapping[str, RunRecord]  # by run id
    without_record: Without = field(default_factory=dict)

    @cached_property
    def copies(self) -> Mapping[str, Sequence[PlannedRun]]:
        """The runs that share the machine with the first of them, itself too, by the id of that."""
        together: dict[str, list[PlannedRun]] = {}
        for run in self.plan.counted:
            if run.spec.experiment.copies > 1:
                together.setdefault(run.spec.shared_key, []).append(run)
        return {run.run_id: runs for runs in together.values() for run in runs if not run.spec.copy}

    @property
    def ends(self) -> list[RunEnd]:
        """What each planned run came to, in the plan's order."""
        return ends_of(self.folder, self.plan, self.selected, self.without_record)

    def run_folder(self, record: RunRecord) -> Path:
        """Return the folder of an execution, relative to the results folder."""
        return Path(RUNS) / record.run_id / record.execution_id


def read_results(folder: Path) -> Results:
    """Read a results folder, of a finished matrix or of one that is at work.

    Raises:
        ResultsError: it is none, or a file in it is damaged.
    """
    plan = read_plan(folder)
    without = without_record(folder)  # before the records are read: a run that ends meanwhile has one
    records = tuple(sorted(read_runs(folder), key=lambda record: (record.run_id, record.execution_id)))
    return Results(
        folder=folder,
        plan=plan,
        planned=tuple(in_file_order(plan)),
        records=records,
        selected=selected_executions(records),
        without_record=without,
    )


def in_file_order(plan: Plan) -> list[PlannedRun]:
    """Return the runs that tables show: variants, in them adapters, in them samplers, those that are another sampler last; of
    copies the first.

    The first block of the plan has the variants in the file's order, but not the adapters.
    """
    written = plan.content.get("adapters")
    entries = [named(entry) for entry in written] if isinstance(written, list) else []
    seen: dict[Hashable, int] = {}

    def rank(*what: Hashable) -> int:
        return seen.setdefault(what, len(seen))

    def key(run: PlannedRun) -> tuple[int, ...]:
        experiment = run.spec.experiment
        return (
            rank("variant", variant_text(experiment.variant)),
            _entry(run, entries),
            rank("label", run.label),
            run.same_as is not None,
            rank("sampler", repr(experiment.sampler)),
            rank("pruner", repr(experiment.pruner)),
            run.block,
        )

    return sorted((run for run in plan.counted if not run.spec.copy), key=key)


def _entry(run: PlannedRun, entries: list[Any]) -> int:
    """Return the place of a run's adapter in the file; equal entries are told apart by the replicate."""
    spec = run.spec
    positions = [
        position
        for position, entry in enumerate(entries)
        if isinstance(entry, dict)
        and (entry.get("name"), entry.get("options") or {}) == (spec.adapter, dict(spec.options))
        and entry.get("platform") in (None, spec.platform)
        and _stated(entry.get("environment")) == _stated(plain(spec.environment))
    ]
    return positions[min(spec.replicate, len(positions) - 1)] if positions else len(entries)


def _stated(environment: Any) -> Any:
    """Return what an environment of an adapter's own asks for, without what it leaves open."""
    return {name: value for name, value in environment.items() if value} if isinstance(environment, dict) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What compared runs share. `text` names it in tables: `random`, `tpe + asha digits-300-small`."""

    sampler: str
    pruner: str
    variant: str
    task: str  # "": the file has no tasks
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A planned run of a group. `record`: the execution that stands for it, of a run that is another's the other's."""

    run_id: str
    spec: RunSpec
    record: RunRecord | None
    status: str  # done, failed, timeout, interrupted, skipped, running, planned
    reason: str | None = None
    will_run: bool = True  # False: skipped, and no other run stands for it
    is_added: bool = False  # its seed was added after the folder's first run: no verdict rests on it

    @property
    def seed(self) -> int:
        return self.spec.seed

    @property
    def execution_id(self) -> str | None:
        """The execution that stands for it; None: it was never started."""
        return self.record.execution_id if self.record is not None else None

    @property
    def is_skipped(self) -> bool:
        return self.status == "skipped"

    @property
    def is_failure(self) -> bool:
        """Whether it counts as worse than any success: it was tried itself, and came to nothing."""
        return self.status in FAILED

    @property
    def flags(self) -> tuple[str, ...]:
        """The names of its own flags."""
        flags = self.record.flags if self.record is not None and not self.is_skipped else ()
        return tuple(dict.fromkeys(flag.name for flag in flags))

    @property
    def has_ended(self) -> bool:
        """Whether it was tried to its end: an interrupted run is to be run again."""
        return self.record is not None and self.record.status in ENDED

    @property
    def is_done(self) -> bool:
        return self.record is not None and self.record.status == "done"

    @property
    def has_failed(self) -> bool:
        return self.record is not None and self.record.status in FAILED

    def metric(self, name: str) -> MetricValue | None:
        """Return a metric of its record as it stands there; what counts of it is `value`."""
        return None if self.record is None else self.record.metrics.get(name)

    def number(self, name: str) -> float | None:
        """Return the value of a metric of its record as it stands there."""
        metric = self.metric(name)
        return None if metric is None else metric.value

    def with_metrics(self, metrics: Mapping[str, MetricValue]) -> Run:
        """Return the run with these figures in its record too, which are no metrics of a run."""
        record = self.record
        return self if record is None else replace(self, record=replace(record, metrics={**record.metrics, **metrics}))


def run_of(run: PlannedRun, selected: Mapping[str, RunRecord], without_record: Without, added_seeds: Collection[int] = ()) -> Run:
    """Return a planned run with the record that stands for it, or how it ended without one."""
    record = selected.get(run.run_id if run.same_as is None else run.same_as)
    status, reason = came_out(run, record, without_record)
    will_run = run.skip_reason is None or run.same_as is not None
    return Run(
        run_id=run.run_id,
        spec=run.spec,
        record=record if will_run else None,
        status=status,
        reason=NOT_BEGUN if (status, reason) == ("planned", None) else reason,
        will_run=will_run,
        is_added=run.spec.seed in added_seeds,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """Which of some executions other programs disturbed (flag `disturbed`), and of which nobody knows; by their ids."""

    runs: frozenset[str] = frozenset()
    disturbed: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()  # their samples do not tell

    def __or__(self, other: Disturbance) -> Disturbance:
        """Return the same of the runs of both."""
        return Disturbance(
            runs=self.runs | other.runs, disturbed=self.disturbed | other.disturbed, unknown=self.unknown | other.unknown
        )

    @property
    def text(self) -> str:
        """In words: `3 of 20 runs disturbed`; `3 of 18 runs disturbed, 2 unknown`: of those that are known."""
        sampled = len(self.runs - self.unknown)
        if self.unknown and not sampled:
            return f"disturbance of {counted(len(self.unknown), 'run')} unknown"
        unknown = f", {len(self.unknown)} unknown" if self.unknown else ""
        return f"{len(self.disturbed)} of {sampled} runs disturbed{unknown}"

    def to_json(self) -> dict[str, int]:
        """Return how many there are of each."""
        return {"runs": len(self.runs), "disturbed": len(self.disturbed), "unknown": len(self.unknown)}


def value(run: Run, metric: str) -> MetricValue:
    """Return a metric of a run that is done, else why it has none. A failed run is, in comparisons, worse than any."""
    record = run.record
    if record is None or record.status != "done":
        status, reason = (record.status, record.reason) if record is not None else (run.status, run.reason)
        return missing("", f"{status}: {reason}" if reason and reason != status else status)
    return record.metrics.get(metric) or missing("", ABSENT)


def disturbance(runs: Iterable[Run]) -> Disturbance:
    """Return which of these runs were disturbed; an execution that stands for several runs counts once.

    Runs without a record are left out: nothing rests on them.
    """
    by_execution = {run.record.execution_id: is_disturbed(run) for run in runs if run.record is not None}
    return Disturbance(
        runs=frozenset(by_execution),
        disturbed=frozenset(name for name, answer in by_execution.items() if answer is True),
        unknown=frozenset(name for name, answer in by_execution.items() if answer is None),
    )


def is_disturbed(run: Run) -> bool | None:
    """Tell whether other programs disturbed a run; None where its samples do not tell, or there are none."""
    if run.record is not None and any(flag.name == DISTURBED for flag in run.record.flags):
        return True
    return None if run.number(SHARE) is None else False
