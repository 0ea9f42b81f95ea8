"""A results folder, read once for everything that a report shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tuneoff.matrix.folder import read_plan
from tuneoff.matrix.plan import Plan, PlannedRun
from tuneoff.records.model import RunRecord
from tuneoff.records.store import read_runs, selected
from tuneoff.report.order import in_file_order


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The plan, every execution, and the one that stands for each run. `planned`: in the file's order, warm-ups left out."""

    folder: Path
    plan: Plan
    planned: tuple[PlannedRun, ...]
    records: tuple[RunRecord, ...]
    standing: Mapping[str, RunRecord]  # by run id

    def run_folder(self, record: RunRecord) -> Path:
        """Return the folder of an execution, relative to the results folder."""
        return Path("runs") / record.run_id / record.execution_id


def read_results(folder: Path) -> Results:
    """Read a results folder, of a finished matrix or of one that is at work.

    Raises:
        ResultsError: it is none, or a file in it is damaged.
    """
    plan = read_plan(folder)
    records = tuple(read_runs(folder))
    standing = {record.run_id: record for record in selected(list(records))}
    return Results(folder=folder, plan=plan, planned=tuple(in_file_order(plan)), records=records, standing=standing)
