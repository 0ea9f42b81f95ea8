"""Where things stand: on the page, and in the results folder beside it. A link never leads to nothing."""

from __future__ import annotations

from pathlib import Path

from tuneoff.judge.answers.answer import Answers
from tuneoff.judge.results import Results
from tuneoff.judge.runs import RunRef, Scope
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import FILE_NAME
from tuneoff.tell.page.texts import path_link

MOST_RUNS = 4000  # in the table of runs, and in those of seeds; beyond, the page would be too large


class Places:
    """The anchors of groups and runs, and the relative paths of files. `folder`: where the page will lie."""

    def __init__(self, results: Results, answers: Answers, folder: Path) -> None:
        self.folder = folder
        self._results = results
        self._shown = frozenset(run.run_id for run in results.planned[:MOST_RUNS])
        self._anchors = _anchors(results, answers)
        self._group_of = {run.run_id: self.group(group.label, group.scope) for group in answers.groups for run in group.runs}
        self._runs = {(group.label, group.scope): {run.seed: run for run in group.runs} for group in answers.groups}

    def group(self, label: str, scope: Scope) -> str:
        """Return the link to the runs behind a group's figures."""
        found = self._anchors.get((label, scope))
        return f"#{found}" if found else ""

    def group_of(self, run_id: str) -> str:
        """Return the link to the group that a run belongs to."""
        return self._group_of.get(run_id, "")

    def run(self, label: str, scope: Scope, seed: int) -> RunRef | None:
        """Return a group's run of a seed."""
        return self._runs.get((label, scope), {}).get(seed)

    def run_link(self, run_id: str | None) -> str:
        """Return the link to a run's row in the table of all runs."""
        return f"#run-{run_id}" if run_id in self._shown else ""

    def file(self, record: RunRecord) -> str:
        """Return the link to a record's file."""
        return path_link(self._results.folder / self._results.run_folder(record) / FILE_NAME, self.folder)


def _anchors(results: Results, answers: Answers) -> dict[tuple[str, Scope], str]:
    """Return the anchor of each group; where other runs stand for its own, that of the group which has them."""
    numbered = {(group.label, group.scope): f"group-{number}" for number, group in enumerate(answers.groups, 1)}
    own = {
        run.run_id: numbered[group.label, group.scope] for group in answers.groups if group.same_as is None for run in group.runs
    }
    twins = {run.run_id: run.same_as for run in results.planned if run.same_as is not None}
    for group in answers.groups:
        if group.same_as is not None:
            standing = (own.get(twins.get(run.run_id, "")) for run in group.runs)
            numbered[group.label, group.scope] = next((anchor for anchor in standing if anchor), "")
    return numbered
