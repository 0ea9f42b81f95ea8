"""A results folder, read once for everything that follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuneoff.experiment.plan import Plan, PlannedRun
from tuneoff.judge.order import in_file_order
from tuneoff.record.results_folder import read_plan
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import RUNS, read_runs, standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The plan, every execution, and the one that stands for each run. `planned`: in the file's order, warm-ups left out."""

    folder: Path
    plan: Plan
    planned: tuple[PlannedRun, ...]
    records: tuple[RunRecord, ...]
    standing: Mapping[str, RunRecord]  # by run id

    @classmethod
    def of(cls, folder: Path, plan: Plan, records: Sequence[RunRecord]) -> Results:
        """Return the results of a plan; the order of the records changes nothing."""
        ordered = tuple(sorted(records, key=lambda record: (record.run_id, record.execution_id)))
        return cls(folder=folder, plan=plan, planned=tuple(in_file_order(plan)), records=ordered, standing=standing(ordered))

    def run_folder(self, record: RunRecord) -> Path:
        """Return the folder of an execution, relative to the results folder."""
        return Path(RUNS) / record.run_id / record.execution_id


def read_results(folder: Path) -> Results:
    """Read a results folder, of a finished matrix or of one that is at work.

    Raises:
        ResultsError: it is none, or a file in it is damaged.
    """
    return Results.of(folder, read_plan(folder), list(read_runs(folder)))
