"""Tables in Apache Arrow's form: their schemas, from rows, to Parquet. pyarrow is imported where it is used.

A table in Parquet has a key, which tells whether what it follows from is still the same.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from tuneoff.base.identity import digest
from tuneoff.errors import ResultsError
from tuneoff.record.end import end_bytes, key_of
from tuneoff.record.store import ended_executions
from tuneoff.tell.frames.tables import Column, Columns, Row

ROWS_AT_ONCE = 20_000  # that are Python objects at a time
ROW_GROUP = 131_072  # rows of a Parquet file that lie together: large enough to read fast, small enough to hold
KEY = b"tuneoff.key"  # in the metadata of a Parquet file


def schema(columns: Columns, key: str = "") -> Any:
    """Return the Arrow schema of a table. It tells pandas the types of integers and truths that may be missing."""
    import pyarrow

    nullable = [
        {"name": name, "field_name": name, "pandas_type": column.dtype, "numpy_type": column.dtype, "metadata": None}
        for name, column in columns.items()
        if column.dtype in ("Int64", "boolean")
    ]
    pandas = {"index_columns": [], "column_indexes": [], "columns": nullable, "pandas_version": "2.2.0"}
    fields = [pyarrow.field(name, _type(column), nullable=not column.always) for name, column in columns.items()]
    metadata = {b"pandas": json.dumps(pandas).encode(), **({KEY: key.encode()} if key else {})}
    return pyarrow.schema(fields).with_metadata(metadata)


def _type(column: Column) -> Any:
    import pyarrow

    types = {"text": pyarrow.string(), "number": pyarrow.float64(), "integer": pyarrow.int64(), "truth": pyarrow.bool_()}
    return pyarrow.dictionary(pyarrow.int32(), pyarrow.string()) if column.type == "key" else types[column.type]


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


def same_columns(fields: Any, columns: Columns) -> bool:
    """Tell whether a file has the columns of today."""
    expected: Mapping[str, Any] = {name: _type(column) for name, column in columns.items()}
    return [(field.name, field.type) for field in fields] == list(expected.items())


def export_key(results: Path) -> str:
    """Return the key of the tables that would be made now: by this tuneoff, of the executions that have ended.

    Raises:
        ResultsError: the folder cannot be read.
    """
    return digest({"/".join(folder.parts[-2:]): key_of(end_bytes(folder)) for folder in ended_executions(results)}, 32)
