"""Watch a results folder in which another process works: every look gives its state, and nothing is written.

Who works there is found out without touching the lock: even to try it could refuse a command that starts. Of the event files
each look reads only what was appended since the last one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from tuneoff.base import clock
from tuneoff.errors import ResultsError
from tuneoff.experiment.spec import RunSpec
from tuneoff.record.events.schema import Process
from tuneoff.record.events.tail import Tail
from tuneoff.record.events.writer import FOLDER as EVENTS
from tuneoff.record.results_folder import PLAN, read_plan
from tuneoff.record.run_ends import UNFINISHED, Holder, holder, newest
from tuneoff.record.run_record import RunRecord
from tuneoff.run.progress import LiveRun, Tracker
from tuneoff.tell.live.overview import Overview
from tuneoff.tell.live.state import Activity, Current, LiveState, counted_statuses

MOST_PROBLEMS = 5


class Following:
    """A run that is under way. A line that is not yet whole is read when it is."""

    def __init__(self, folder: Path, spec: RunSpec) -> None:
        self.folder = folder
        self._tail = Tail(folder / EVENTS)
        self._tracker = Tracker(experiment=spec.experiment, run_id=folder.parent.name)
        self._coordinator: Process | None = None  # whose clock the steps are on

    @property
    def host(self) -> str | None:
        """The host on which it runs; None: it has written nothing yet."""
        return self._coordinator.host if self._coordinator is not None else None

    @property
    def problems(self) -> list[str]:
        """What could not be read."""
        return self._tail.problems

    def look(self) -> LiveRun:
        """Return where the run stands now."""
        for process, event in self._tail.poll():
            if self._coordinator is None or (process.role == "coordinator" and self._coordinator.role != "coordinator"):
                self._coordinator = process
            self._tracker.take(process, event)
        return self._tracker.live(self._now_ns())

    def _now_ns(self) -> int:
        """Return the moment on the monotonic clock of the run's host: by its anchor, where that is not this boot of this host."""
        there = self._coordinator
        if there is None or there.boot_id == clock.boot_id():
            return clock.monotonic_ns()
        return there.anchor_monotonic_ns + (time.time_ns() - there.anchor_wall_ns)


class Watcher:
    """Looks at a results folder again and again; what has been read is not read again."""

    def __init__(self, results: Path) -> None:
        """Read the plan.

        Raises:
            ResultsError: it is no results folder.
        """
        self.results = results
        self._following: Following | None = None
        self._read_plan()

    @property
    def version(self) -> tuple[int, int]:
        """A value that differs once the plan or any record does."""
        return (self._plan_ns, self._overview.executions.changes)

    @property
    def ended(self) -> Mapping[str, RunRecord]:
        """The records without what is large, by the path of the execution's folder."""
        return self._overview.executions.ended

    def look(self) -> LiveState:
        """Return the state now.

        Raises:
            ResultsError: the folder is gone, or its plan is damaged.
        """
        if self._plan_changed():
            self._read_plan()
        held = holder(self.results)
        overview = self._overview
        overview.executions.look()
        self._follow(held)
        live = self._following.look() if self._following is not None else None
        host = self._following.host if self._following is not None and not held.works and held.pid is not None else None
        is_elsewhere = host is not None and host != os.uname().nodename
        running = self._following.folder if self._following is not None and (held.works or is_elsewhere) else None
        rows = overview.rows(running.parent.name if running is not None else None)
        counts = counted_statuses(rows)
        if held.works:
            activity = Activity.WORKING
        elif is_elsewhere:
            activity = Activity.ELSEWHERE
        else:
            activity = Activity.STOPPED if any(counts[status] for status in UNFINISHED) else Activity.FINISHED
        current = None
        if running is not None and live is not None:
            run_id = running.parent.name
            current = Current(
                run_id=run_id,
                execution_id=running.name,
                name=overview.grid.names[run_id],
                position=self._positions[run_id],
                total=len(self._positions),
                metric=overview.specs[run_id].experiment.objective.metric,
                live=live,
            )
        host = host if is_elsewhere else None
        return overview.state(rows, activity, current, pid=held.pid, host=host, problems=self._problems())

    def _follow(self, held: Holder) -> None:
        """Choose the execution that is under way: the newest without a record, begun by the command that works here."""
        found = newest(held, self._overview.executions.open)
        if found is None:
            self._following = None
        elif self._following is None or self._following.folder != Path(found):
            self._following = Following(Path(found), self._overview.specs[Path(found).parent.name])

    def _problems(self) -> tuple[str, ...]:
        found = list(self._overview.executions.problems.values())
        found += self._following.problems if self._following is not None else []
        more = len(found) - MOST_PROBLEMS
        return (*found[:MOST_PROBLEMS], *([f"and {more} more"] if more > 0 else []))

    def _plan_changed(self) -> bool:
        try:
            return os.stat(self.results / PLAN).st_mtime_ns != self._plan_ns
        except OSError as error:
            raise ResultsError(f"{self.results} is gone: {PLAN} cannot be read ({error.strerror})") from error

    def _read_plan(self) -> None:
        plan = read_plan(self.results)
        self._plan_ns = os.stat(self.results / PLAN).st_mtime_ns
        self._positions = {run.run_id: position for position, run in enumerate(plan.to_run, 1)}
        self._overview = Overview(plan, self.results)
        self._following = None
