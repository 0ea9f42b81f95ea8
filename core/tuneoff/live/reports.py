"""The report of a results folder as text: nothing is written into the folder."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

# The page's own policy, in it, allows its one script by its hash; both hold at once.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def rendered(results: Path) -> str:
    """Return the report of a results folder as HTML.

    Raises:
        MissingPackageError: a package of the report is missing.
        ResultsError: a file in the folder is damaged.
    """
    html: str = import_module("tuneoff.page.report").rendered(results)
    return html
