"""The report of a results folder as text: nothing is written, neither into the folder nor anywhere else."""

from __future__ import annotations

from pathlib import Path

# The page's own policy, in it, allows its one script by its hash; both hold at once.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def rendered(folder: Path) -> str:
    """Return the report of a results folder as HTML, with links as if it lay where `tuneoff report` writes it.

    Raises:
        MissingPackageError: a package of the report is missing.
        ResultsError: a file in the folder is damaged.
    """
    from tuneoff.page.report import FOLDER, need_packages

    need_packages()
    from tuneoff.answers.all import answers
    from tuneoff.answers.results import read_results
    from tuneoff.page.build import page
    from tuneoff.page.figures import plots
    from tuneoff.page.render import render
    from tuneoff.plots.all import drawings

    results = read_results(folder)
    found = answers(results)
    return render(page(results, found, plots(drawings(results, found)), folder / FOLDER))
