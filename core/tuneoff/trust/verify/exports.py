"""Hold the tables of `export/` to the records that they were made of: export again, and compare."""

from __future__ import annotations

import contextlib
import filecmp
import logging
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from tuneoff.base.files import pinned, without_links
from tuneoff.base.layout import EXPORT
from tuneoff.errors import TuneoffError
from tuneoff.tell.frames.export import TABLES, export, stored_keys
from tuneoff.tell.frames.parquet import export_key
from tuneoff.trust.verify.findings import Check, Problem

AGAIN = "export again"


def export_problems(results: Path, run_ids: Sequence[str], defective: Sequence[str], notes: list[str]) -> Iterator[Problem]:
    """Yield a problem for each table of `export/` that is not what exporting gives now, though it is of the same executions.

    `defective`: executions ("run id/execution id") with problems of their own: no table of these can be held to anything.
    `notes`: what was not compared.
    """
    folder = results / EXPORT
    try:
        with pinned(folder) as path:
            present = sorted(os.listdir(path))
    except OSError as error:
        yield Problem(check="file", where=EXPORT, text=f"cannot be read: {error.strerror}")
        return
    if any(name.endswith(".parquet") for name in present):
        notes.append(f"{EXPORT}/*.parquet were not compared: only csv and json are")
    formats: tuple[Literal["csv", "json"], ...] = ("csv", "json")
    for format in formats:
        names = [f"{table}.{format}" for table in TABLES]
        if not any(name in present for name in names):
            continue
        for name in names:
            if name not in present:
                yield _problem("file", name, "is missing, the other tables are there")
            elif not (folder / name).is_file() or (folder / name).is_symlink():
                yield _problem("file", name, "is not a file")
                return
        if defective:
            notes.append(f"{EXPORT}/*.{format} were not compared: executions differ themselves: {', '.join(defective)}")
        elif stored_keys(folder).get(format) != export_key(results):
            notes.append(f"{EXPORT}/*.{format} are of other executions, or of another tuneoff: {AGAIN}")
        else:
            yield from _changed(results, format, [name for name in names if name in present], run_ids, notes)


def _changed(
    results: Path, format: Literal["csv", "json"], names: Sequence[str], run_ids: Sequence[str], notes: list[str]
) -> Iterator[Problem]:
    with tempfile.TemporaryDirectory(prefix="tuneoff-verify-") as temporary:
        try:
            with _quiet():
                export(results, without_links(Path(temporary)), format, run_ids)
            for name in names:
                if not filecmp.cmp(results / EXPORT / name, Path(temporary, name), shallow=False):
                    yield _problem("value", name, "is not what the records give")
        except (OSError, TuneoffError) as error:
            notes.append(f"{EXPORT}/*.{format} could not be compared: {error}")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the export from warning of what verifying has named already."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def _problem(check: Check, name: str, text: str) -> Problem:
    return Problem(check=check, where=f"{EXPORT}/{name}", text=f"{text}; {AGAIN}")
