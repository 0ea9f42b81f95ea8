"""Export a results folder for other tools: long tables (`TABLES`) as CSV, JSON or Parquet."""

from __future__ import annotations

import contextlib
import csv
import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, Protocol

from tuneoff.accounting.model import NO_ACCOUNTING
from tuneoff.accounting.store import read_accounting
from tuneoff.errors import MissingPackageError, ResultsError
from tuneoff.metrics.evidence import Evidence, on_run_clock
from tuneoff.records.model import RunRecord
from tuneoff.records.store import read_run, run_paths
from tuneoff.report.rows import (
    DECLARED_COLUMNS,
    EPOCH_COLUMNS,
    INTEGER,
    METRIC_COLUMNS,
    NUMBER,
    RUN_COLUMNS,
    STEP_COLUMNS,
    TEXT,
    TRIAL_COLUMNS,
    TRUTH,
    Row,
    declared_rows,
    epoch_rows,
    metric_rows,
    run_row,
    step_rows,
    trial_rows,
)
from tuneoff.report.trial_charges import trial_charges
from tuneoff.samples.reader import read_samples

Format = Literal["csv", "json", "parquet"]
FORMATS: tuple[Format, ...] = ("csv", "json", "parquet")
TABLES = ("runs", "trials", "epochs", "metrics", "steps", "declared")

log = logging.getLogger(__name__)


def export(results: Path, destination: Path, format: Format = "csv", run_ids: Sequence[str] = ()) -> list[Path]:
    """Write the tables of all executions into `destination` and return their paths; one run in memory at a time.

    Times are seconds since the run's start. In `epochs` each metric of an epoch has its own row.
    `run_ids`: the runs in the order of the rows; runs that are not among them come last.

    Raises:
        ResultsError: a record cannot be read, or the destination cannot be written.
        MissingPackageError: Parquet without pyarrow.
    """
    open_table = _table_writer(format)
    executions = _executions(results, run_ids)
    chosen = _selected(executions)
    tables: list[tuple[Mapping[str, str], Callable[[RunRecord, Path], Iterable[Row]]]] = [  # as TABLES
        (RUN_COLUMNS, lambda run, _: [run_row(run, run.execution_id in chosen)]),
        (TRIAL_COLUMNS, lambda run, folder: trial_rows(run, trial_charges(run, _evidence(run, folder)))),
        (EPOCH_COLUMNS, lambda run, _: epoch_rows(run)),
        (METRIC_COLUMNS, lambda run, _: metric_rows(run)),
        (STEP_COLUMNS, lambda run, _: step_rows(run)),
        (DECLARED_COLUMNS, lambda run, _: declared_rows(run)),
    ]
    paths = [destination / f"{name}.{format}" for name in TABLES]
    parts = [path.with_name(f".{path.name}.tmp") for path in paths]
    try:
        destination.mkdir(parents=True, exist_ok=True)
        writers = [open_table(part, columns) for part, (columns, _) in zip(parts, tables, strict=True)]
        try:
            for execution in executions:
                run = read_run(execution.path)
                for writer, (_, rows) in zip(writers, tables, strict=True):
                    writer.write(rows(run, execution.path.parent))
        finally:
            for writer in writers:
                writer.close()
        for part, path in zip(parts, paths, strict=True):
            os.replace(part, path)
    except OSError as error:
        raise ResultsError(f"{destination} cannot be written: {error.strerror or error}; choose another folder") from error
    finally:
        for part in parts:
            with contextlib.suppress(OSError):
                part.unlink()
    return paths


def _evidence(run: RunRecord, folder: Path) -> Evidence:
    """Return a run's samples and prices; what is damaged is left out with a warning, so that the rest is exported."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Execution:
    """What decides the place of an execution and whether it stands for its run."""

    path: Path
    run_id: str
    execution_id: str
    started_at: str
    is_done: bool
    is_warm_up: bool


def _executions(results: Path, run_ids: Sequence[str]) -> list[_Execution]:
    """Return the executions in the order of `run_ids`, those of one run by their start."""
    found = []
    for path in run_paths(results):
        run = read_run(path)
        execution = _Execution(
            path=path,
            run_id=run.run_id,
            execution_id=run.execution_id,
            started_at=run.started_at or "",
            is_done=run.status == "done",
            is_warm_up=run.run_spec().warm_up,
        )
        found.append(execution)
    places = {run_id: place for place, run_id in enumerate(run_ids)}
    return sorted(found, key=lambda one: (places.get(one.run_id, len(places)), one.run_id, one.started_at, one.execution_id))


def _selected(executions: Iterable[_Execution]) -> set[str]:
    """Return the executions that stand for their runs: the latest that is done, else the latest; warm-ups count nowhere."""
    best: dict[str, tuple[bool, str, str]] = {}
    for one in executions:
        if not one.is_warm_up:
            best[one.run_id] = max(best.get(one.run_id, (False, "", "")), (one.is_done, one.started_at, one.execution_id))
    return {execution for _, _, execution in best.values()}


class _Table(Protocol):
    def write(self, rows: Iterable[Row]) -> None: ...
    def close(self) -> None: ...


class _CsvTable:
    """Comma-separated values; a missing value is an empty field."""

    def __init__(self, path: Path, columns: Mapping[str, str]) -> None:
        self._file: IO[str] = path.open("w", newline="", encoding="utf-8")
        self._writer = csv.DictWriter(self._file, list(columns))
        self._writer.writeheader()

    def write(self, rows: Iterable[Row]) -> None:
        self._writer.writerows(rows)

    def close(self) -> None:
        self._file.close()


class _JsonTable:
    """One array of objects, one object per line."""

    def __init__(self, path: Path, columns: Mapping[str, str]) -> None:
        self._file: IO[str] = path.open("w", encoding="utf-8")
        self._separator = "[\n"

    def write(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._file.write(self._separator + json.dumps(row, allow_nan=False, ensure_ascii=False))
            self._separator = ",\n"

    def close(self) -> None:
        self._file.write("[]\n" if self._separator == "[\n" else "\n]\n")
        self._file.close()


class _ParquetTable:
    """Apache Parquet, a row group per run."""

    def __init__(self, path: Path, columns: Mapping[str, str]) -> None:
        import pyarrow
        from pyarrow import parquet

        types = {TEXT: pyarrow.string(), NUMBER: pyarrow.float64(), INTEGER: pyarrow.int64(), TRUTH: pyarrow.bool_()}
        self._schema = pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])
        self._make = pyarrow.Table.from_pylist
        self._writer = parquet.ParquetWriter(path, self._schema, compression="zstd")

    def write(self, rows: Iterable[Row]) -> None:
        found = list(rows)
        if found:
            self._writer.write_table(self._make(found, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


def _table_writer(format: Format) -> Callable[[Path, Mapping[str, str]], _Table]:
    if format == "parquet":
        try:
            import pyarrow.parquet  # noqa: F401
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "pyarrow":
                raise
            raise MissingPackageError(
                "Parquet needs the pyarrow package; run: pip install 'tuneoff[export]', or export as csv or json"
            ) from error
        return _ParquetTable
    return _CsvTable if format == "csv" else _JsonTable
