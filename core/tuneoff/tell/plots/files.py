"""A drawing as files: what a page shows, a picture, and the table behind both."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Collection
from pathlib import Path

from tuneoff.base.files import make_folder, remove_file
from tuneoff.errors import ResultsError
from tuneoff.record.store import write_bytes
from tuneoff.tell.plots.drawing import Drawing

SUFFIXES = ("svg", "png", "csv")
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\\t", "\\r")  # control characters are escapes by then


def write(drawing: Drawing, folder: Path) -> None:
    """Write NAME.svg, NAME.png and NAME.csv; the folder is made where it is missing.

    Raises:
        ResultsError: the folder is full or cannot be written.
    """
    try:
        make_folder(folder)
    except OSError as error:
        raise ResultsError(f"{folder} cannot be made: {error.strerror}; free space or choose another folder") from error
    for name, content in contents(drawing).items():
        write_bytes(folder / name, content)


def contents(drawing: Drawing) -> dict[str, bytes]:
    """Return what is in each file of a drawing."""
    found = {"svg": drawing.svg.encode(), "png": drawing.png, "csv": table(drawing).encode()}
    return {f"{drawing.name}.{suffix}": content for suffix, content in found.items() if content}


def remove_others(folder: Path, drawn: Collection[str], known: Collection[str]) -> None:
    """Remove the files of plots that an earlier report had and this one has not; files that are none of ours stay."""
    for name in set(known) - set(drawn):
        for suffix in SUFFIXES:
            with contextlib.suppress(OSError):  # never there, or it cannot be removed: the page does not name it
                remove_file(folder / f"{name}.{suffix}")


def table(drawing: Drawing) -> str:
    """Return what is drawn as CSV with a header; a missing value is an empty cell.

    A text that a spreadsheet would take for a formula begins with an apostrophe: names and reasons come from outside.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(drawing.columns)
    writer.writerows([_harmless(cell) for cell in row] for row in drawing.rows)
    return file.getvalue()


def _harmless(cell: str | float | int | bool | None) -> str | float | int | bool | None:
    return f"'{cell}" if isinstance(cell, str) and cell.lstrip().startswith(FORMULA) else cell
