"""A drawing as files: what a page shows, a picture, and the table behind both."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from tuneoff.errors import ResultsError
from tuneoff.plots.drawing import Drawing
from tuneoff.records.store import write_bytes


def write(drawing: Drawing, folder: Path) -> None:
    """Write NAME.svg, NAME.png and NAME.csv; the folder is made where it is missing.

    Raises:
        ResultsError: the folder is full or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResultsError(f"{folder} cannot be made: {error.strerror}; free space or choose another folder") from error
    write_bytes(folder / f"{drawing.name}.svg", drawing.svg.encode())
    if drawing.png:
        write_bytes(folder / f"{drawing.name}.png", drawing.png)
    write_bytes(folder / f"{drawing.name}.csv", table(drawing).encode())


def table(drawing: Drawing) -> str:
    """Return what is drawn as CSV with a header; a missing value is an empty cell."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(drawing.columns)
    writer.writerows(drawing.rows)
    return file.getvalue()
