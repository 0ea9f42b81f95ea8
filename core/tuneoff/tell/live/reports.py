"""The report of a results folder with the files of its plots: nothing is written, neither into the folder nor anywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tuneoff.tell.plots.drawing import Drawing

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
    from tuneoff.tell.page.report import FOLDER, composed, need_packages

    need_packages()
    from tuneoff.judge.answers.compute import answers
    from tuneoff.judge.results import read_results
    from tuneoff.tell.page.figures import PLOTS
    from tuneoff.tell.plots.files import contents

    results = read_results(folder)
    files: dict[str, bytes] = {}

    def keep(drawing: Drawing) -> None:
        files.update({f"{PLOTS}/{name}": content for name, content in contents(drawing).items()})

    html = composed(results, answers(results), folder / FOLDER, keep)
    return Rendered(page=html, files=files)
