"""Hold the tables of `export/` to the records that they were made of: export again, and compare."""

from __future__ import annotations

import contextlib
import csv
import filecmp
import itertools
import json
import logging
import os
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from tuneoff.base.files import pinned, without_links
from tuneoff.errors import TuneoffError
from tuneoff.tell.frames.export import TABLES, export
from tuneoff.trust.verify.findings import Problem, differences

FOLDER = "export"
MOST_TIMES_LARGER, MOST_BYTES_LARGER = 10, 10_000_000
MOST_ROWS = 20  # rows of a table that are named
AGAIN = "export again"
_NAMES = ("execution_id", "trial", "attempt", "epoch", "step", "symbol", "name", "metric")  # columns that name a row

Row = dict[str, Any]
Named = dict[tuple[str, str], tuple[int, Row]]  # by execution and name: place in the table, and the row


def export_problems(results: Path, run_ids: Sequence[str], defective: Collection[str], notes: list[str]) -> Iterator[Problem]:
    """Yield a problem for each table of `export/` that is not what exporting gives now.

    `defective`: executions ("run id/execution id") whose records are not right themselves: their rows are left out.
    `notes`: what was not compared.
    """
    folder = results / FOLDER
    try:
        with pinned(folder) as place:
            present = [folder / name for name in sorted(os.listdir(place))]
    except OSError as error:
        yield Problem(check="file", where=FOLDER, what="", text=f"cannot be read: {error.strerror}")
        return
    formats: tuple[Literal["csv", "json"], ...] = ("csv", "json")
    for format in formats:
        tables = [path for path in present if path.name in _files(format)]
        if tables:
            yield from _format_problems(results, format, tables, run_ids, defective, notes)
    if defective and present:
        notes.append(
            f"{FOLDER}/: rows of the executions that differ themselves were not compared: {', '.join(sorted(defective))}"
        )
    if any(path.suffix == ".parquet" for path in present):
        notes.append(f"{FOLDER}/*.parquet were not compared: only csv and json are")


def _files(format: str) -> set[str]:
    return {f"{table}.{format}" for table in TABLES}


def _format_problems(
    results: Path,
    format: Literal["csv", "json"],
    tables: Sequence[Path],
    run_ids: Sequence[str],
    defective: Collection[str],
    notes: list[str],
) -> Iterator[Problem]:
    """Hold the tables of a format, of which at least one is there, to what exporting gives now."""
    for name in sorted(_files(format) - {path.name for path in tables}):
        yield _file_problem(name, "is missing, the other tables are there")
    if special := next((path.name for path in tables if path.is_symlink() or not path.is_file()), None):
        yield _file_problem(special, "is no file")
        return
    with tempfile.TemporaryDirectory(prefix="tuneoff-verify-") as temporary:
        try:
            with _quiet():
                made = {path.name: path for path in export(results, without_links(Path(temporary)), format, run_ids)}
            executions = {_key(row): row for row in _rows(made[f"runs.{format}"])}
        except Exception as error:  # a changed record may break any rule of exporting: it has been named
            if not defective and not isinstance(error, TuneoffError | OSError):
                raise
            text = str(error) if isinstance(error, TuneoffError | OSError) else f"{type(error).__name__}: {error}"
            notes.append(f"{FOLDER}/*.{format} could not be compared: {text}")
            return
        sound = []
        for path in tables:
            before, today = (one.stat().st_size for one in (path, made[path.name]))
            if before <= MOST_TIMES_LARGER * today + MOST_BYTES_LARGER:  # else no row is worth the time and the memory
                sound.append(path)
            else:
                yield _file_problem(path.name, f"has {before} bytes, but the table of today has {today}")
        later = next((_later(path, executions) for path in sound if path.stem == "runs"), set())
        if later:
            notes.append(f"{FOLDER}/*.{format} lack executions that were made later: {len(later)}; {AGAIN}")
        repeated = {key.partition("/")[0] for key in later}  # another execution may stand for them since
        for path in sound:
            yield from _table_problems(path, made[path.name], {*defective, *later}, repeated)


def _file_problem(name: str, text: str) -> Problem:
    return Problem(check="file", where=f"{FOLDER}/{name}", what="", text=f"{text}; {AGAIN}")


def _later(runs: Path, executions: dict[str, Row]) -> set[str]:
    """Return the executions that began after all those of a stored table of runs: it was made before them."""
    try:
        stored = {_key(row) for row in _rows(runs)}
    except (OSError, ValueError, RecursionError, csv.Error):  # told where the table is compared
        return set()
    starts = [str(row["started_at"] or "") for key, row in executions.items() if key in stored]
    if not starts:
        return set()
    return {key for key, row in executions.items() if key not in stored and str(row["started_at"] or "") > max(starts)}


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the export from warning of what verifying has named already."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def _table_problems(stored: Path, recomputed: Path, left_out: set[str], repeated: set[str]) -> Iterator[Problem]:
    where = f"{FOLDER}/{stored.name}"
    try:
        if filecmp.cmp(stored, recomputed, shallow=False):
            return
        found = _row_differences(_named(stored, left_out), _named(recomputed, left_out), repeated)
        for what, text in itertools.islice(found, MOST_ROWS):
            yield Problem(check="value", where=where, what=what, text=text)
        more = sum(1 for _ in found)
        if more:
            yield Problem(check="value", where=where, what="", text=f"and {more} further values differ; {AGAIN}")
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        yield _file_problem(stored.name, f"cannot be compared: {error}")


def _row_differences(old: Named, new: Named, repeated: set[str]) -> Iterator[tuple[str, str]]:
    """Yield (name of the row and column, how it differs); an execution that a table lacks, or that has no record, is one line."""
    before, today = (dict.fromkeys(execution for execution, _ in rows) for rows in (old, new))
    yield from ((execution, f"has rows, but no record; {AGAIN}") for execution in before if execution not in today)
    yield from ((execution, f"has no rows: they were removed; {AGAIN}") for execution in today if execution not in before)
    for (execution, name), (number, row) in new.items():
        label = f"row {number} ({name})"
        if (execution, name) not in old:
            yield from [(label, "is missing")] if execution in before else []
            continue
        for difference in differences(old[execution, name][1], row):
            if difference.path != "is_selected" or row["run_id"] not in repeated:
                yield f"{label} {difference.path}", difference.text
    for execution, name in old:
        if execution in today and (execution, name) not in new:
            yield f"row ({name})", "is no row of the records"
    if set(old) == set(new) and list(old) != list(new):
        yield "", f"its rows stand in another order; {AGAIN}"


def _key(row: Row) -> str:
    """Return what tells an execution from all others, as in a path: run id / execution id."""
    return f"{row.get('run_id')}/{row.get('execution_id')}"


def _named(path: Path, left_out: set[str]) -> Named:
    """Return a table's rows by what names them, without executions that are left out; a name that stands twice is numbered."""
    found: Named = {}
    for number, row in enumerate(_rows(path), 1):
        if (execution := _key(row)) in left_out:
            continue
        base = name = _name(row)
        for again in itertools.count(2):
            if (execution, name) not in found:
                break
            name = f"{base}, {again}"
        found[execution, name] = (number, row)
    return found


def _rows(path: Path) -> list[Row]:
    csv.field_size_limit(sys.maxsize)
    with path.open(newline="", encoding="utf-8") as file:
        if path.suffix == ".csv":
            return [{str(name): value for name, value in row.items()} for row in csv.DictReader(file)]
        rows = json.load(file)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("its rows must be objects")
    return rows


def _name(row: Row) -> str:
    return ", ".join(f"{row[name]}" for name in _NAMES if row.get(name) not in (None, ""))
