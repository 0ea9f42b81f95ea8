"""The executions of a results folder in the order of its tables, and the rows that each gives to a table."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tuneoff.base.files import read_regular
from tuneoff.errors import ResultsError
from tuneoff.experiment.accounting.declared import NO_ACCOUNTING, read_accounting
from tuneoff.measure.evidence import Evidence, on_run_clock
from tuneoff.record.run_record import RunRecord, RunStatus
from tuneoff.record.samples.reader import read_samples
from tuneoff.record.store import read_run, run_paths, standing
from tuneoff.tell.frames.columns import CHARGED
from tuneoff.tell.report.export_rows import (
    Row,
    declared_rows,
    epoch_rows,
    metric_rows,
    run_row,
    step_rows,
    trial_charges,
    trial_rows,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredExecution:
    """An execution: where its record is, and whether it stands for its run. Warm-ups count nowhere."""

    path: Path
    is_selected: bool

    def read(self) -> RunRecord:
        """Read its record.

        Raises:
            ResultsError: it cannot be read.
        """
        return read_run(self.path)

    def rows(self, table: str, run: RunRecord, columns: Collection[str] | None = None) -> Iterable[Row]:
        """Return its rows of a table. `columns`: those that are wanted (None: all); the others may be null."""
        if table == "trials":
            wants_charges = columns is None or not {*CHARGED}.isdisjoint(columns)
            charges = trial_charges(run, _evidence(run, self.path.parent)) if wants_charges else {}
            return trial_rows(run, self.is_selected, charges)
        return _ROWS[table](run, self.is_selected)


_ROWS: Mapping[str, Callable[[RunRecord, bool], Iterable[Row]]] = {
    "runs": lambda run, is_selected: [run_row(run, is_selected)],
    "epochs": epoch_rows,
    "metrics": metric_rows,
    "steps": step_rows,
    "declared": declared_rows,
}


class _Head(msgspec.Struct):
    """What decides the place of an execution; the rest of its record is not built."""

    run_id: str
    execution_id: str
    specification: dict[str, Any]
    status: RunStatus
    charged: Any = None
    started_at: str | None = None
    environment: dict[str, Any] = msgspec.field(default_factory=dict)


_decode = msgspec.json.Decoder(_Head).decode


def executions(results: Path, run_ids: Sequence[str] = ()) -> list[StoredExecution]:
    """Return the executions in the order of `run_ids`, those of one run by their start; further runs come last.

    Raises:
        ResultsError: the folder or a record cannot be read.
    """
    heads = [(path, _head(path)) for path in run_paths(results)]
    counted = [_stub(head) for _, head in heads if head.specification.get("warm_up") is not True]
    stand = {(run.run_id, run.execution_id) for run in standing(counted).values()}
    places = {run_id: place for place, run_id in enumerate(run_ids)}
    heads.sort(key=lambda one: _place(one[1], places))
    return [StoredExecution(path=path, is_selected=(head.run_id, head.execution_id) in stand) for path, head in heads]


def _place(head: _Head, places: Mapping[str, int]) -> tuple[int, str, str, str]:
    return places.get(head.run_id, len(places)), head.run_id, head.started_at or "", head.execution_id


def _head(path: Path) -> _Head:
    try:
        return _decode(read_regular(path))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        read_run(path)  # says what is wrong with it
        raise ResultsError(f"{path} is no run record: {error}; derive it again from its events or remove it") from error


def _stub(head: _Head) -> RunRecord:
    """Return a record with no more than what decides which execution stands."""
    return RunRecord(
        run_id=head.run_id,
        execution_id=head.execution_id,
        specification={},
        status=head.status,
        reason=None if head.status == "done" else "as its record says",
        charged=head.charged,
        started_at=head.started_at,
        environment=head.environment,
    )


def _evidence(run: RunRecord, folder: Path) -> Evidence:
    """Return a run's samples and prices; what is damaged is left out with a warning, so that the rest is there."""
    samples, accounting = None, NO_ACCOUNTING
    try:
        samples = on_run_clock(read_samples(folder), run)
    except ResultsError as error:
        log.warning("trials without energy and CO2e: %s", error)
    try:
        accounting = read_accounting(folder)
    except ResultsError as error:
        log.warning("trials without CO2e and cost: %s", error)
    return Evidence(samples=samples, accounting=accounting)
