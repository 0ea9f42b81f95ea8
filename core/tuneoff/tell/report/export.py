"""Export a results folder for other tools: long tables (`TABLES`) as CSV, JSON or Parquet."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

from tuneoff.base.files import make_folder, replacing
from tuneoff.base.packages import install_command, missing_modules
from tuneoff.errors import MissingPackageError, ResultsError
from tuneoff.tell.frames.columns import TABLES as COLUMNS
from tuneoff.tell.frames.columns import Columns
from tuneoff.tell.frames.executions import executions
from tuneoff.tell.frames.parquet import ParquetTable, make_manifest, write_manifest
from tuneoff.tell.report.export_rows import Row

Format = Literal["csv", "json", "parquet"]
FORMATS: tuple[Format, ...] = ("csv", "json", "parquet")
TABLES = tuple(COLUMNS)


def export(results: Path, destination: Path, format: Format = "csv", run_ids: Sequence[str] = ()) -> list[Path]:
    """Write the tables of all executions into `destination` and return their paths; one run in memory at a time.

    Times are seconds since the run's start. In `epochs` each metric of an epoch has its own row.
    `run_ids`: the runs in the order of the rows; runs that are not among them come last. Beside tables in Parquet stands
    what they were made from, so that `tuneoff.load` can tell whether they are current.

    Raises:
        ResultsError: a record cannot be read, or the destination cannot be written.
        MissingPackageError: Parquet without pyarrow.
    """
    if format == "parquet" and missing_modules(("pyarrow",)):
        command = install_command("tuneoff[export]")
        raise MissingPackageError(f"Parquet needs the pyarrow package; run: {command}, or export as csv or json")
    paths = [destination / f"{name}.{format}" for name in TABLES]
    try:
        manifest = make_manifest(results) if format == "parquet" else None
        found = executions(results, run_ids)
        open_table = _table_writer(format, manifest.made_from if manifest is not None else "")
        make_folder(destination)
        with contextlib.ExitStack() as replaced:
            writers: list[_Table] = []
            try:
                for path, columns in zip(paths, COLUMNS.values(), strict=True):
                    writers.append(open_table(replaced.enter_context(replacing(path)), columns))
                for execution in found:
                    run = execution.read()
                    for name, writer in zip(TABLES, writers, strict=True):
                        writer.write(execution.rows(name, run))
            finally:
                for writer in writers:
                    writer.close()
        if manifest is not None:
            write_manifest(destination, manifest)
    except OSError as error:
        raise ResultsError(f"{destination} cannot be written: {error.strerror or error}; choose another folder") from error
    return paths


class _Table(Protocol):
    def write(self, rows: Iterable[Row]) -> None: ...
    def close(self) -> None: ...


class _CsvTable:
    """Comma-separated values; a missing value is an empty field."""

    def __init__(self, file: BinaryIO, columns: Columns) -> None:
        self._file = io.TextIOWrapper(file, newline="", encoding="utf-8")
        self._writer = csv.DictWriter(self._file, list(columns))
        self._writer.writeheader()

    def write(self, rows: Iterable[Row]) -> None:
        self._writer.writerows(rows)

    def close(self) -> None:
        self._file.detach()


class _JsonTable:
    """One array of objects, one object per line."""

    def __init__(self, file: BinaryIO, columns: Columns) -> None:
        self._file = io.TextIOWrapper(file, encoding="utf-8")
        self._separator = "[\n"

    def write(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._file.write(self._separator + json.dumps(row, allow_nan=False, ensure_ascii=False))
            self._separator = ",\n"

    def close(self) -> None:
        self._file.write("[]\n" if self._separator == "[\n" else "\n]\n")
        self._file.detach()


def _table_writer(format: Format, made_from: str) -> Callable[[BinaryIO, Columns], _Table]:
    if format == "parquet":
        return lambda file, columns: ParquetTable(file, columns, made_from)
    return _CsvTable if format == "csv" else _JsonTable
