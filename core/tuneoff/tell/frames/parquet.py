"""Tables in Apache Arrow's form: their schemas, from rows, to Parquet. pyarrow is imported where it is used.

What an export in Parquet was made from tells whether the records are still the same.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

import tuneoff
from tuneoff.base.files import open_regular, read_regular
from tuneoff.base.identity import digest
from tuneoff.errors import ResultsError
from tuneoff.experiment.accounting.declared import FILE_NAME as ACCOUNTING
from tuneoff.record.results_folder import PLAN
from tuneoff.record.samples.schema import FILE_NAME as SAMPLES
from tuneoff.record.store import run_paths, write_bytes
from tuneoff.tell.frames.columns import Column, Columns
from tuneoff.tell.report.export_rows import Row

ROWS_AT_ONCE = 20_000  # that are Python objects at a time
ROW_GROUP = 131_072  # rows of a Parquet file that lie together: large enough to read fast, small enough to hold
MADE_FROM = b"tuneoff.made_from"  # of a Parquet file: what its manifest says too
FILE_NAME = "made_from.json"
FORMAT_VERSION = 1
SURE_NS = 2_000_000_000  # a file younger than this when the manifest was made may change again within one tick of its clock


def schema(columns: Columns, made_from: str = "") -> Any:
    """Return the Arrow schema of a table. It tells pandas the types of integers and truths that may be missing."""
    import pyarrow

    told = [
        {"name": name, "field_name": name, "pandas_type": column.dtype, "numpy_type": column.dtype, "metadata": None}
        for name, column in columns.items()
        if column.dtype in ("Int64", "boolean")
    ]
    pandas = {"index_columns": [], "column_indexes": [], "columns": told, "pandas_version": "2.2.0"}
    fields = [pyarrow.field(name, _type(column), nullable=not column.always) for name, column in columns.items()]
    metadata = {b"pandas": json.dumps(pandas).encode(), **({MADE_FROM: made_from.encode()} if made_from else {})}
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


def joined(found: Sequence[Any], form: Any) -> Any:
    """Return parts of one table as a whole, whose keys have one set of values."""
    import pyarrow

    return pyarrow.concat_tables([form.empty_table(), *found]).unify_dictionaries()


class ParquetTable:
    """A Parquet file that is written part by part; rows of many runs lie together, so that it is read fast."""

    def __init__(self, file: BinaryIO | Path, columns: Columns, made_from: str = "") -> None:
        from pyarrow import parquet

        self._columns = columns
        self._schema = schema(columns, made_from)
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


def same_columns(found: Any, columns: Columns) -> bool:
    """Tell whether a file has the columns of today."""
    expected: Mapping[str, Any] = {name: _type(column) for name, column in columns.items()}
    return [(field.name, field.type) for field in found] == list(expected.items())


class Source(msgspec.Struct, frozen=True):
    """A file that the tables were made from."""

    size: int
    mtime_ns: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The files that tables were made from, by their path in the results folder."""

    format_version: int = FORMAT_VERSION
    tuneoff: str = ""  # the version that made it: what a trial is charged is computed, and another may compute it otherwise
    made_at_ns: int
    sources: dict[str, Source]

    @property
    def made_from(self) -> str:
        """Digest of the content of all sources; every table has it too, so that those of two exports are not mixed."""
        return digest({name: source.sha256 for name, source in self.sources.items()}, 32)


def make_manifest(results: Path) -> Manifest:
    """Return the manifest of a results folder as it is now: make it before reading, so that a later change shows.

    Raises:
        ResultsError: the folder cannot be read.
    """
    made_at = time.time_ns()
    sources = {}
    for name, found in _sources(results):
        sources[name] = Source(size=found.st_size, mtime_ns=found.st_mtime_ns, sha256=_sha256(results / name))
    return Manifest(tuneoff=tuneoff.__version__, made_at_ns=made_at, sources=sources)


def write_manifest(folder: Path, manifest: Manifest) -> Path:
    """Write it beside the tables and return its path."""
    path = folder / FILE_NAME
    write_bytes(path, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
    return path


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of an export; None: there is none that can be used."""
    try:
        manifest = msgspec.json.decode(read_regular(folder / FILE_NAME), type=Manifest)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return manifest if manifest.format_version == FORMAT_VERSION else None


def changes(manifest: Manifest, results: Path) -> str | None:
    """Return in words what has changed in the results folder, or in tuneoff, since; None: nothing has.

    Where size and time of a file are those of then, it is taken as the same; where the size alone is, as in a copy of the
    folder, or where the file was young then, its content decides.
    """
    if manifest.tuneoff != tuneoff.__version__:
        return f"tuneoff {manifest.tuneoff or 'of an unknown version'} made it, this is {tuneoff.__version__}"
    found = dict(_sources(results))
    new, gone = found.keys() - manifest.sources.keys(), manifest.sources.keys() - found.keys()
    both = [name for name in manifest.sources if name in found]
    changed = [name for name in both if not _is_same(results, name, found[name], manifest)]
    texts = [f"{len(names)} {word}" for names, word in ((new, "new"), (gone, "gone"), (changed, "changed")) if names]
    return f"files it was made from: {', '.join(texts)}" if texts else None


def _is_same(results: Path, name: str, now: os.stat_result, manifest: Manifest) -> bool:
    source = manifest.sources[name]
    if now.st_size != source.size:
        return False
    if now.st_mtime_ns == source.mtime_ns and source.mtime_ns < manifest.made_at_ns - SURE_NS:
        return True
    return _sha256(results / name) == source.sha256


def _sources(results: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the plan, and of each execution its record and what its trials are charged by, with size and time."""
    root = str(results)
    names = [PLAN]
    for path in run_paths(results):
        folder = os.path.relpath(path.parent, root)
        names += [os.path.join(folder, name) for name in (path.name, SAMPLES, ACCOUNTING)]
    for name in names:
        try:
            found = os.lstat(os.path.join(root, name))
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode):
            yield name, found


def _sha256(path: Path) -> str:
    """Return the digest of a file; "" where it cannot be read: whoever reads it says so."""
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
