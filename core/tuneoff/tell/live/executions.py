"""The executions in a results folder, found as they come. Of each record the head is read, once."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from tuneoff.errors import ResultsError
from tuneoff.record.events.tail import SETTLED_NS
from tuneoff.record.run_ends import begun_ns
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import FILE_NAME, RUNS
from tuneoff.tell.record_head import read_head


class Executions:
    """Follows the folders of the planned runs. A look costs one `stat` per run, and one more per execution without record."""

    def __init__(self, results: Path, run_ids: Iterable[str]) -> None:
        self.ended: dict[str, RunRecord] = {}  # by the path of the execution's folder
        self.open: dict[str, int] = {}  # the same -> when it was begun (wall clock, ns): those without a record
        self.problems: dict[str, str] = {}
        self.changes = 0  # how often anything was different
        self._folders = {run_id: os.path.join(results, RUNS, run_id) for run_id in run_ids}
        self._scanned: dict[str, tuple[int, int]] = {}  # run id -> the folder's modification time, and when it was scanned

    def look(self) -> None:
        """Take in what is new."""
        for run_id, folder in self._folders.items():
            try:
                modified = os.stat(folder).st_mtime_ns
            except OSError:
                continue  # not begun
            before = self._scanned.get(run_id)
            if before is None or before[0] != modified or before[1] - modified <= SETTLED_NS:
                self._scan(run_id, folder, modified)
        for folder in list(self.open):
            self._look_for_record(folder)

    def _scan(self, run_id: str, folder: str, modified: int) -> None:
        now = time.time_ns()
        try:
            with os.scandir(folder) as entries:
                found = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return
        for path in found:
            if path not in self.ended and path not in self.open and path not in self.problems:
                self.open[path] = begun_ns(path)
                self.changes += 1
        self._scanned[run_id] = (modified, now)

    def _look_for_record(self, folder: str) -> None:
        path = os.path.join(folder, FILE_NAME)
        if not os.path.lexists(path):
            if not os.path.isdir(folder):  # it was removed
                del self.open[folder]
                self.changes += 1
            return
        try:
            record = read_head(Path(path))
            if (record.run_id, record.execution_id) != tuple(folder.split(os.sep)[-2:]):
                raise ResultsError(f"{path} is the record of another place: {record.run_id}/{record.execution_id}")
            self.ended[folder] = record
        except ResultsError as error:
            self.problems[folder] = str(error)
        del self.open[folder]
        self.changes += 1
