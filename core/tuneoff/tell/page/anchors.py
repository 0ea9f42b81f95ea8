"""Where things stand: on the page, and in the results folder beside it. A link never leads to nothing."""

from __future__ import annotations

from pathlib import Path

from tuneoff.judge.results import Results
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import FILE_NAME
from tuneoff.tell.page.texts import path_link

MOST_RUNS = 4000  # in the table of runs; beyond, the page would be too large


class Places:
    """The anchors of runs, and the relative paths of files. `folder`: where the page will lie."""

    def __init__(self, results: Results, folder: Path) -> None:
        self._folder = folder
        self._results = results
        self._shown = frozenset(run.run_id for run in results.planned[:MOST_RUNS])

    def run(self, run_id: str) -> str:
        """Return the link to a run's row in the table of runs, "" where it has none."""
        return f"#run-{run_id}" if run_id in self._shown else ""

    def file(self, record: RunRecord) -> str:
        """Return the link to a record's file."""
        return path_link(self._results.folder / self._results.run_folder(record) / FILE_NAME, self._folder)
