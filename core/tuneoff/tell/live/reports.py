"""The report of a results folder: nothing is written, neither into the folder nor anywhere else."""

from __future__ import annotations

from pathlib import Path

# The page's own policy, in it, allows its one script by its hash; both hold at once.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def rendered(folder: Path) -> str:
    """Return the report of a results folder, with links as if it lay where `tuneoff report` writes it.

    Raises:
        MissingPackageError: a package of the report is missing.
        ResultsError: a file in the folder is damaged.
    """
    from tuneoff.tell.page.report import FOLDER, composed, need_packages

    need_packages()
    from tuneoff.judge.choice.choose import answered
    from tuneoff.judge.results import read_results

    return composed(answered(read_results(folder)), folder / FOLDER)
