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
from typing import Any, NamedTuple

from tuneoff.base.files import pinned, without_links
from tuneoff.errors import TuneoffError
from tuneoff.tell.report.export import TABLES, export
from tuneoff.trust.verify.problem import Problem
from tuneoff.trust.verify.record_differences import differences

FOLDER = "export"
MOST_TIMES_LARGER, MOST_BYTES_LARGER = 10, 10_000_000
MOST_ROWS = 20  # rows of a table that are named
AGAIN = "export again"
_NAMES = ("execution_id", "trial", "attempt", "epoch", "step", "symbol", "name", "metric")  # columns that name a row

Row = dict[str, Any]


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
    for format in ("csv", "json"):
        names = {f"{table}.{format}" for table in TABLES}
        tables = [path for path in present if path.name in names]
        if not tables:
            continue
        for name in sorted(names - {path.name for path in tables}):
            yield Problem(
                check="file", where=f"{FOLDER}/{name}", what="", text=f"is missing, the other tables are there; {AGAIN}"
            )
        if special := next((path.name for path in tables if path.is_symlink() or not path.is_file()), None):
            yield Problem(check="file", where=f"{FOLDER}/{special}", what="", text=f"is no file; {AGAIN}")
            continue
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
                continue
            too_large = {path.name: why for path in tables if (why := _too_large(path, made[path.name]))}
            for name, why in too_large.items():
                yield Problem(check="file", where=f"{FOLDER}/{name}", what="", text=why)
            runs = f"runs.{format}"
            later = _later(folder / runs, executions) if runs not in too_large else set()
            if later:
                notes.append(f"{FOLDER}/*.{format} lack executions that were made later: {len(later)}; {AGAIN}")
            known = _Known(
                order={key: place for place, key in enumerate(executions)},
                left_out={*defective, *later},
                repeated={key.partition("/")[0] for key in later},
            )
            for table in tables:
                if table.name not in too_large:
                    yield from _table_problems(table, made[table.name], known)
    if defective and present:
        notes.append(
            f"{FOLDER}/: rows of the executions that differ themselves were not compared: {', '.join(sorted(defective))}"
        )
    if any(path.suffix == ".parquet" for path in present):
        notes.append(f"{FOLDER}/*.parquet were not compared: only csv and json are")


class _Known(NamedTuple):
    """What tables are held to: the places of all executions, those that are left out, and the runs of later ones."""

    order: dict[str, int]
    left_out: set[str]
    repeated: set[str]  # another execution may stand for them since


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


def _too_large(stored: Path, recomputed: Path) -> str | None:
    """Return why no row of a stored table is worth the time and the memory."""
    before, today = (path.stat().st_size for path in (stored, recomputed))
    if before <= MOST_TIMES_LARGER * today + MOST_BYTES_LARGER:
        return None
    return f"has {before} bytes, but the table of today has {today}; {AGAIN}"


def _table_problems(stored: Path, recomputed: Path, known: _Known) -> Iterator[Problem]:
    where = f"{FOLDER}/{stored.name}"
    try:
        if filecmp.cmp(stored, recomputed, shallow=False):
            return
        found = _row_differences(stored, recomputed, known)
        for what, text in itertools.islice(found, MOST_ROWS):
            yield Problem(check="value", where=where, what=what, text=text)
        more = sum(1 for _ in found)
        if more:
            yield Problem(check="value", where=where, what="", text=f"and {more} further values differ; {AGAIN}")
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        yield Problem(check="file", where=where, what="", text=f"cannot be compared: {error}; {AGAIN}")


def _row_differences(stored: Path, recomputed: Path, known: _Known) -> Iterator[tuple[str, str]]:
    """Yield (name of the row and column, how it differs), execution by execution: both tables have a fixed order.

    An execution that a table lacks, or that has no record, is one line.
    """
    order, left_out = known.order, known.left_out
    groups = [itertools.groupby(enumerate(_rows(path), 2), _execution) for path in (stored, recomputed)]
    old, new = (next(group, None) for group in groups)
    while old is not None or new is not None:
        before, today = (order.get(group[0], -1) if group is not None else len(order) for group in (old, new))
        if old is not None and new is not None and old[0] == new[0]:
            if old[0] not in left_out:
                yield from _group_differences([row for _, row in old[1]], list(new[1]), known.repeated)
            old, new = (next(group, None) for group in groups)
        elif old is not None and (before <= today or new is None):
            if old[0] not in left_out:
                yield old[0], f"has rows, but {'they stand elsewhere' if old[0] in order else 'no record'}; {AGAIN}"
            old = next(groups[0], None)
        else:
            assert new is not None
            if new[0] not in left_out:
                yield new[0], f"has no rows: they were removed; {AGAIN}"
            new = next(groups[1], None)


def _execution(item: tuple[int, Row]) -> str:
    return _key(item[1])


def _key(row: Row) -> str:
    """Return what tells an execution from all others, as in a path: run id / execution id."""
    return f"{row.get('run_id')}/{row.get('execution_id')}"


def _group_differences(old: list[Row], new: list[tuple[int, Row]], repeated: set[str]) -> Iterator[tuple[str, str]]:
    """Compare the rows of one execution, by their names; rows that a table lacks or has besides are named once."""
    olds, news = _named(old), _named([row for _, row in new])
    numbers = [number for number, _ in new]
    for place, (name, row) in enumerate(news.items()):
        label = f"row {numbers[place] - 1} ({name})"
        if name not in olds:
            yield label, "is missing"
            continue
        for difference in differences(olds[name], row):
            if difference.path == "is_selected" and row["run_id"] in repeated:
                continue
            yield f"{label} {difference.path}", difference.text
    for name in olds:
        if name not in news:
            yield f"row ({name})", "is no row of the records"
    if list(olds) != list(news) and set(olds) == set(news):
        yield "", f"its rows stand in another order; {AGAIN}"


def _named(rows: list[Row]) -> dict[str, Row]:
    """Return rows by what names them; a name that stands twice is numbered."""
    found: dict[str, Row] = {}
    for row in rows:
        base = name = _name(row)
        for number in itertools.count(2):
            if name not in found:
                break
            name = f"{base}, {number}"
        found[name] = row
    return found


def _rows(path: Path) -> Iterator[Row]:
    return _csv_rows(path) if path.suffix == ".csv" else _json_rows(path)


def _csv_rows(path: Path) -> Iterator[Row]:
    csv.field_size_limit(sys.maxsize)
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            yield {str(name): value for name, value in row.items()}


def _json_rows(path: Path) -> Iterator[Row]:
    """Yield the objects of an array that has one per line, as they are exported."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            text = line.strip().strip("[],")
            if text:
                row = json.loads(text)
                if not isinstance(row, dict):
                    raise ValueError("a row must be an object")
                yield row


def _name(row: Row) -> str:
    return ", ".join(f"{row[name]}" for name in _NAMES if row.get(name) not in (None, ""))
