"""`tuneoff report`: read a results folder once, answer, choose, and write one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tuneoff.base import files
from tuneoff.base.packages import install_command, missing_modules
from tuneoff.errors import MissingPackageError, ResultsError
from tuneoff.record.store import write_bytes

if TYPE_CHECKING:
    from tuneoff.judge.choice.choose import Answered

FOLDER = "report"  # in a results folder; derived from it, so it is in no bundle
PAGE = "report.html"
PACKAGES = ("scipy", "jinja2")


def need_packages(names: Sequence[str] = PACKAGES) -> None:
    """Raise MissingPackageError in one line where a package of the report is not installed."""
    missing = missing_modules(names)
    if missing:
        raise MissingPackageError(f"the report needs {', '.join(missing)}; run: {install_command('tuneoff[report]')}")


def write_report(results_folder: Path, output: Path | None = None, found: Answered | None = None) -> Path:
    """Write report.html; return its path.

    `output`: the folder to write to; default: `report/` in the results folder. `found`: what is said of it; None: not known yet.

    Raises:
        MissingPackageError: a package of the report is missing.
        ResultsError: it is no results folder, a file in it is damaged, or the report cannot be written.
    """
    need_packages()
    from tuneoff.judge.choice.choose import answered
    from tuneoff.judge.results import read_results

    folder = output or results_folder / FOLDER
    text = composed(found or answered(read_results(results_folder)), folder)
    make_folder(folder)
    path = folder / PAGE
    write_bytes(path, text.encode())
    return path


def composed(found: Answered, folder: Path) -> str:
    """Return the HTML of a report that will lie in `folder`."""
    from tuneoff.tell.page.build import page
    from tuneoff.tell.page.render import render

    return render(page(found, folder))


def make_folder(folder: Path) -> None:
    """Make the folder of a report.

    Raises:
        ResultsError: it cannot be made.
    """
    try:
        files.make_folder(folder)
    except OSError as error:
        raise ResultsError(f"{folder} cannot be made: {error.strerror}; free space or choose another --output") from error
