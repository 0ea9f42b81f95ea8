"""The report of a results folder with the files of its plots: nothing is written, neither into the folder nor anywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

# The page's own policy, in it, allows its one script by its hash; both hold at once.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A report. `files`: what the page links to beside it, by relative path."""

    page: str
    files: Mapping[str, bytes] = field(default_factory=dict)


def rendered(folder: Path) -> Rendered:
    """Return the report of a results folder, with links as if it lay where `tuneoff report` writes it.

    Raises:
        MissingPackageError: a package of the report is missing.
        ResultsError: a file in the folder is damaged.
    """
    from tuneoff.page.report import FOLDER, need_packages

    need_packages()
    from tuneoff.answers.all import answers
    from tuneoff.answers.results import read_results
    from tuneoff.page.build import page
    from tuneoff.page.figures import PLOTS, Room, plot
    from tuneoff.page.places import linked_runs
    from tuneoff.page.render import render
    from tuneoff.plots.all import drawings
    from tuneoff.plots.files import contents

    results = read_results(folder)
    found = answers(results)
    room, linked = Room(), linked_runs(results)
    plots, files = [], {}
    for drawing in drawings(results, found):
        plots.append(plot(drawing, room, linked))
        files.update({f"{PLOTS}/{name}": content for name, content in contents(drawing).items()})
    return Rendered(page=render(page(results, found, plots, folder / FOLDER)), files=files)
