"""A results folder, read once for everything that follows from it; its runs in the order of the file."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuneoff.base.layout import RUNS
from tuneoff.experiment.names import variant_text
from tuneoff.experiment.plan import Plan, PlannedRun
from tuneoff.experiment.variants import named
from tuneoff.measure.stored import read_runs
from tuneoff.record.results_folder import read_plan
from tuneoff.record.run_record import RunRecord
from tuneoff.record.selection import selected_executions
from tuneoff.run.run_ends import RunEnd, Without, ends_of, without_record


def in_file_order(plan: Plan) -> list[PlannedRun]:
    """Return the runs that tables show: variants, in them adapters, in them samplers, those that are another sampler last.

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

    return sorted(plan.counted, key=key)


def _entry(run: PlannedRun, entries: list[Any]) -> int:
    """Return the place of a run's adapter in the file; equal entries are told apart by the replicate."""
    positions = [position for position, entry in enumerate(entries) if isinstance(entry, dict) and _is_of(run, entry)]
    return positions[min(run.spec.replicate, len(positions) - 1)] if positions else len(entries)


def _is_of(run: PlannedRun, entry: dict[str, Any]) -> bool:
    spec = run.spec
    platform = entry.get("platform")
    return (
        entry.get("name") == spec.adapter
        and (entry.get("options") or {}) == dict(spec.options)
        and platform in (None, spec.platform)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The plan, every execution, and the one that stands for each run. `planned`: in the file's order, warm-ups left out."""

    folder: Path
    plan: Plan
    planned: tuple[PlannedRun, ...]
    records: tuple[RunRecord, ...]
    selected: Mapping[str, RunRecord]  # by run id
    without_record: Without = field(default_factory=dict)

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
