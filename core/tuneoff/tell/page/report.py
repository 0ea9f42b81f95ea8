"""`tuneoff report`: read a results folder once, answer, draw, and write one page with its plots beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tuneoff.base import files
from tuneoff.base.packages import install_command, missing_modules
from tuneoff.errors import MissingPackageError, ResultsError
from tuneoff.record.store import write_bytes

if TYPE_CHECKING:
    from tuneoff.judge.answers.answer import Answers
    from tuneoff.judge.results import Results
    from tuneoff.tell.plots.drawing import Drawing

FOLDER = "report"  # in a results folder; derived from it, so it is in no bundle
PAGE = "report.html"
PACKAGES = ("scipy", "matplotlib", "jinja2")


def need_packages(names: Sequence[str] = PACKAGES) -> None:
    """Raise MissingPackageError in one line where a package of the report is not installed."""
    missing = missing_modules(names)
    if missing:
        raise MissingPackageError(f"the report needs {', '.join(missing)}; run: {install_command('tuneoff[report]')}")


def write_report(results_folder: Path, output: Path | None = None) -> Path:
    """Write report.html, and `plots/` with each plot as SVG, PNG and CSV; return the path of the page.

    `output`: the folder to write to; default: `report/` in the results folder.

    Raises:
        MissingPackageError: a package of the report is missing.
        ResultsError: it is no results folder, a file in it is damaged, or the report cannot be written.
    """
    need_packages()
    from tuneoff.judge.answers.compute import answers
    from tuneoff.judge.results import read_results
    from tuneoff.tell.page.figures import PLOTS
    from tuneoff.tell.plots.drawings import NAMES
    from tuneoff.tell.plots.files import remove_others, write

    folder = output or results_folder / FOLDER
    results = read_results(results_folder)
    found = answers(results)
    make_folder(folder)
    drawn = []

    def keep(drawing: Drawing) -> None:
        write(drawing, folder / PLOTS)
        drawn.append(drawing.name)

    path = folder / PAGE
    write_bytes(path, composed(results, found, folder, keep).encode())
    remove_others(folder / PLOTS, drawn, NAMES)
    return path


def composed(results: Results, found: Answers, folder: Path, keep: Callable[[Drawing], None]) -> str:
    """Return the HTML of a report that will lie in `folder`; each drawing is given to `keep` once it is made."""
    from tuneoff.tell.page.build import page
    from tuneoff.tell.page.figures import Room, plot
    from tuneoff.tell.page.render import render
    from tuneoff.tell.plots.drawings import drawings

    room = Room()
    plots = []
    for drawing in drawings(results, found):
        keep(drawing)
        plots.append(plot(drawing, room))
    return render(page(results, found, plots, folder))


def make_folder(folder: Path) -> None:
    """Make the folder of a report.

    Raises:
        ResultsError: it cannot be made.
    """
    try:
        files.make_folder(folder)
    except OSError as error:
        raise ResultsError(f"{folder} cannot be made: {error.strerror}; free space or choose another --output") from error
