"""Hold the tables of `export/` to the records that they were made of: export again, and compare."""

from __future__ import annotations

import csv
import filecmp
import itertools
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tuneoff.errors import TuneoffError
from tuneoff.report.export import export
from tuneoff.verify.compare import differences
from tuneoff.verify.problem import Problem

FOLDER = "export"
MOST_ROWS = 20  # rows of a table that are named
_NAMES = ("execution_id", "trial", "attempt", "epoch", "step", "symbol", "name", "metric")  # columns that name a row


def export_problems(results: Path, run_ids: Sequence[str], notes: list[str]) -> Iterator[Problem]:
    """Yield a problem for each table of `export/` that is not what exporting gives now; `notes`: what was not compared."""
    folder = results / FOLDER
    for format in ("csv", "json"):
        tables = sorted(folder.glob(f"*.{format}"))
        if not tables:
            continue
        with tempfile.TemporaryDirectory(prefix="tuneoff-verify-") as temporary:
            try:
                made = {path.name: path for path in export(results, Path(temporary), format, run_ids)}
            except (TuneoffError, OSError) as error:
                notes.append(f"{FOLDER}/*.{format} could not be compared: {error}")
                continue
            for table in tables:
                if table.name in made:
                    yield from _table_problems(table, made[table.name], format)
    if any(folder.glob("*.parquet")):
        notes.append(f"{FOLDER}/*.parquet were not compared: only csv and json are")


def _table_problems(stored: Path, recomputed: Path, format: str) -> Iterator[Problem]:
    where = f"{FOLDER}/{stored.name}"
    try:
        if filecmp.cmp(stored, recomputed, shallow=False):
            return
        found = _row_differences(stored, recomputed, format)
        for what, text in itertools.islice(found, MOST_ROWS):
            yield Problem(check="value", where=where, what=what, text=text)
        more = sum(1 for _ in found)
        if more:
            yield Problem(check="value", where=where, what="", text=f"and {more} further values differ; export again")
    except (OSError, ValueError, csv.Error) as error:
        yield Problem(check="file", where=where, what="", text=f"cannot be compared: {error}")


def _row_differences(stored: Path, recomputed: Path, format: str) -> Iterator[tuple[str, str]]:
    """Yield (name of the row and column, how it differs), row by row: both tables have a fixed order."""
    read = _csv_rows if format == "csv" else _json_rows
    for number, (old, new) in enumerate(itertools.zip_longest(read(stored), read(recomputed)), 1):
        row = f"row {number} ({_name(old if old is not None else new)})"
        if old is None:
            yield row, "is missing"
        elif new is None:
            yield row, "is no row of the records"
        else:
            for difference in differences(old, new):
                yield f"{row} {difference.path}", difference.text


def _csv_rows(path: Path) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(sys.maxsize)
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            yield {str(name): value for name, value in row.items()}


def _json_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of an array that has one per line, as they are exported."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            text = line.strip().strip("[],")
            if text:
                row = json.loads(text)
                if not isinstance(row, dict):
                    raise ValueError("a row must be an object")
                yield row


def _name(row: dict[str, Any] | None) -> str:
    return ", ".join(f"{row[name]}" for name in _NAMES if row and row.get(name) not in (None, ""))
