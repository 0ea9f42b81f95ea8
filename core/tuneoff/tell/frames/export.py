"""The executions of a results folder in the order of its tables, the rows that each gives to a table, and these tables as files.

Long tables (`TABLES`) are written for other tools as CSV, JSON or Parquet, where pyarrow is imported. A table in Parquet has a
key, which tells whether what it follows from is still the same.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import itertools
import json
import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol

from tuneoff.base.commands import install_command
from tuneoff.base.files import make_folder, read_json, replacing
from tuneoff.base.identity import digest
from tuneoff.base.packages import missing_modules
from tuneoff.errors import MissingPackageError, ResultsError
from tuneoff.experiment.accounting.declared import NO_ACCOUNTING, read_accounting
from tuneoff.measure.stored import read_run
from tuneoff.record.end import end_bytes, key_of
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import Evidence, on_run_clock, read_samples
from tuneoff.record.store import ended_executions, selected_executions
from tuneoff.tell.frames.tables import (
    CHARGED,
    Columns,
    Row,
    declared_rows,
    epoch_rows,
    metric_rows,
    run_row,
    step_rows,
    trial_charges,
    trial_rows,
)
from tuneoff.tell.frames.tables import TABLES as COLUMNS
from tuneoff.tell.record_head import read_head

ROWS_AT_ONCE = 20_000  # that are Python objects at a time
ROW_GROUP = 131_072  # rows of a Parquet file that lie together: large enough to read fast, small enough to hold
KEY = b"tuneoff.key"  # in the metadata of a Parquet file
log = logging.getLogger(__name__)
Format = Literal["csv", "json", "parquet"]
KEYS = ".keys"  # beside tables as CSV or JSON
FORMATS: tuple[Format, ...] = ("csv", "json", "parquet")
TABLES = tuple(COLUMNS)
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # how a text begins that a spreadsheet may compute
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredExecution:
    """An execution: its folder, and whether it stands for its run. Warm-ups count nowhere."""

    folder: Path
    is_selected: bool

    def read(self) -> RunRecord:
        """Read its record.

        Raises:
            ResultsError: it cannot be read.
        """
        return read_run(self.folder)

    def rows(self, table: str, run: RunRecord, columns: Collection[str] | None = None) -> Iterable[Row]:
        """Return its rows of a table. `columns`: those that are wanted (None: all); the others may be null."""
        if table != "trials":
            return _ROWS[table](run, self.is_selected)
        if columns is not None and {*CHARGED}.isdisjoint(columns):
            return trial_rows(run, self.is_selected, {})
        samples, accounting = None, NO_ACCOUNTING
        try:  # what is damaged is left out, so that the rest is there
            samples = on_run_clock(read_samples(self.folder), run)
        except ResultsError as error:
            log.warning("trials without energy and CO2e: %s", error)
        try:
            accounting = read_accounting(self.folder)
        except ResultsError as error:
            log.warning("trials without CO2e and cost: %s", error)
        return trial_rows(run, self.is_selected, trial_charges(run, Evidence(samples=samples, accounting=accounting)))


_ROWS: Mapping[str, Callable[[RunRecord, bool], Iterable[Row]]] = {
    "runs": lambda run, is_selected: [run_row(run, is_selected)],
    "epochs": epoch_rows,
    "metrics": metric_rows,
    "steps": step_rows,
    "declared": declared_rows,
}


def executions(results: Path, run_ids: Sequence[str] = ()) -> list[StoredExecution]:
    """Return the executions in the order of `run_ids`, those of one run by their start; further runs come last.

    Raises:
        ResultsError: the folder or a record cannot be read.
    """
    heads = [(folder, read_head(folder)) for folder in ended_executions(results)]
    selected = set(map(_id, selected_executions([head for _, head in heads if "warm_up" not in head.specification]).values()))
    places = {run_id: position for position, run_id in enumerate(run_ids)}
    heads.sort(key=lambda pair: (places.get(pair[1].run_id, len(places)), pair[1].run_id, pair[1].started_at or "", _id(pair[1])))
    return [StoredExecution(folder=folder, is_selected=_id(head) in selected) for folder, head in heads]


def _id(run: RunRecord) -> tuple[str, str]:
    return run.run_id, run.execution_id


def export(results: Path, destination: Path, format: Format = "csv", run_ids: Sequence[str] = ()) -> list[Path]:
    """Write the tables of all executions into `destination` and return their paths; one run in memory at a time.

    Times are seconds since the run's start. In `epochs` each metric of an epoch has its own row.
    `run_ids`: the runs in the order of the rows; runs that are not among them come last. A key tells what the tables follow from:
    in each that is in Parquet, and of other formats in `.keys`.

    Raises:
        ResultsError: a record cannot be read, or the destination cannot be written.
        MissingPackageError: Parquet without pyarrow.
    """
    if format == "parquet" and missing_modules(("pyarrow",)):
        command = install_command("pyarrow")
        raise MissingPackageError(f"Parquet needs the pyarrow package; run: {command}, or export as csv or json")
    paths = [destination / f"{name}.{format}" for name in TABLES]
    try:
        key = export_key(results)  # before the records are read, so that a later change shows
        open_table: Callable[[BinaryIO, Columns], _Table] = _CsvTable if format == "csv" else _JsonTable
        if format == "parquet":
            open_table = functools.partial(ParquetTable, key=key)
        stored = executions(results, run_ids)
        make_folder(destination)
        with contextlib.ExitStack() as replaced:
            writers: list[_Table] = []
            try:
                for path, columns in zip(paths, COLUMNS.values(), strict=True):
                    writers.append(open_table(replaced.enter_context(replacing(path)), columns))
                for execution in stored:
                    run = execution.read()
                    for name, writer in zip(TABLES, writers, strict=True):
                        writer.write(execution.rows(name, run))
            finally:
                for writer in writers:
                    writer.close()
        if format != "parquet":
            with replacing(destination / KEYS) as file:
                file.write(json.dumps({**stored_keys(destination), format: key}).encode())
    except OSError as error:
        raise ResultsError(f"{destination} cannot be written: {error.strerror or error}; choose another folder") from error
    return paths


def stored_keys(folder: Path) -> dict[str, str]:
    """Return the keys of the tables in a folder by their format, as far as it says them."""
    try:
        keys = read_json(folder / KEYS)
    except (OSError, ValueError):
        return {}
    return keys if isinstance(keys, dict) else {}


class _Table(Protocol):
    def write(self, rows: Iterable[Row]) -> None: ...
    def close(self) -> None: ...


class _CsvTable:
    """Comma-separated values; a missing value is an empty field, and no text is a formula to a spreadsheet."""

    def __init__(self, file: BinaryIO, columns: Columns) -> None:
        self._file = io.TextIOWrapper(file, newline="", encoding="utf-8")
        self._writer = csv.DictWriter(self._file, list(columns))
        self._writer.writeheader()

    def write(self, rows: Iterable[Row]) -> None:
        for row in rows:  # before a text that a spreadsheet would compute stands an apostrophe (OWASP, CSV Injection)
            texts = {name: value for name, value in row.items() if isinstance(value, str) and value.startswith(FORMULA)}
            formulas = {name: f"'{text}" for name, text in texts.items() if _NUMBER.fullmatch(text) is None}
            self._writer.writerow({**row, **formulas})

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


def schema(columns: Columns, key: str = "") -> Any:
    """Return the Arrow schema of a table. It tells pandas the types of integers and truths that may be missing."""
    import pyarrow

    nullable = [
        {"name": name, "field_name": name, "pandas_type": column.dtype, "numpy_type": column.dtype, "metadata": None}
        for name, column in columns.items()
        if column.dtype in ("Int64", "boolean")
    ]
    pandas = {"index_columns": [], "column_indexes": [], "columns": nullable, "pandas_version": "2.2.0"}
    types = {"text": pyarrow.string(), "number": pyarrow.float64(), "integer": pyarrow.int64(), "truth": pyarrow.bool_()}
    types["key"] = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    fields = [pyarrow.field(name, types[column.type], nullable=not column.always) for name, column in columns.items()]
    metadata = {b"pandas": json.dumps(pandas).encode(), **({KEY: key.encode()} if key else {})}
    return pyarrow.schema(fields).with_metadata(metadata)


def parts(rows: Iterable[Row], columns: Columns, form: Any) -> Iterable[Any]:
    """Yield the rows as Arrow tables of at most `ROWS_AT_ONCE`; what a row has besides the columns is left out.

    Raises:
        ResultsError: a value does not fit its column.
    """
    import pyarrow

    remaining = iter(rows)
    while part := list(itertools.islice(remaining, ROWS_AT_ONCE)):
        arrays = []
        for field, (name, column) in zip(form, columns.items(), strict=True):
            values = [row[name] for row in part]
            if column.type == "number":
                values = [None if value is None else float(value) for value in values]
            try:
                arrays.append(pyarrow.array(values, type=field.type))
            except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError, UnicodeEncodeError) as error:
                where = f"{part[0]['run_id']}/{part[0]['execution_id']}"
                raise ResultsError(f"{where}: a value of `{name}` fits no table: {error}; derive its record again") from error
        yield pyarrow.Table.from_arrays(arrays, schema=form)


def joined(tables: Sequence[Any], form: Any) -> Any:
    """Return parts of one table as a whole, whose keys have one set of values."""
    import pyarrow

    return pyarrow.concat_tables([form.empty_table(), *tables]).unify_dictionaries()


class ParquetTable:
    """A Parquet file that is written part by part; rows of many runs lie together, so that it is read fast."""

    def __init__(self, file: BinaryIO | Path, columns: Columns, key: str = "") -> None:
        from pyarrow import parquet

        self._columns = columns
        self._schema = schema(columns, key)
        self._parts: list[Any] = []
        self._rows = 0
        self._writer = parquet.ParquetWriter(file, self._schema, compression="zstd")

    def write(self, rows: Iterable[Row]) -> None:
        for part in parts(rows, self._columns, self._schema):
            self.add(part)

    def add(self, part: Any) -> None:
        """Add an Arrow table."""
        self._parts.append(part)
        self._rows += part.num_rows
        if self._rows >= ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._parts:
            self._writer.write_table(joined(self._parts, self._schema).combine_chunks(), row_group_size=2 * ROW_GROUP)
            self._parts, self._rows = [], 0

    def close(self) -> None:
        try:
            self._flush()
        finally:
            self._writer.close()


def export_key(results: Path) -> str:
    """Return the key of the tables that would be made now: by this tuneoff, of the executions that have ended.

    Raises:
        ResultsError: the folder cannot be read.
    """
    return digest({"/".join(folder.parts[-2:]): key_of(end_bytes(folder)) for folder in ended_executions(results)}, 32)
