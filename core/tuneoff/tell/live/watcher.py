"""Watch a results folder in which another process works: every look gives its state, and nothing is written.

Who works there is found out without touching the lock: even to try it could refuse a command that starts. Of the event files
each look reads only what was appended since the last one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tuneoff.base import clock
from tuneoff.base.files import read_regular
from tuneoff.base.processes import is_alive
from tuneoff.errors import ResultsError
from tuneoff.experiment.plan import Plan
from tuneoff.experiment.spec import RunSpec
from tuneoff.record.events.schema import Process
from tuneoff.record.events.tail import Tail
from tuneoff.record.events.writer import FOLDER as EVENTS
from tuneoff.record.history import read_history
from tuneoff.record.results_folder import LOCK, PLAN, read_plan
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import is_final, standing
from tuneoff.run.progress import LiveRun, Tracker
from tuneoff.tell.live.executions import Executions
from tuneoff.tell.live.state import (
    LEFT,
    Activity,
    Current,
    Ended,
    Estimate,
    Grid,
    LiveState,
    SeedRow,
    SoFar,
    cells_of,
    counted_statuses,
)

KILLED = "its command was killed"
MOST_PROBLEMS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The command that took the folder last. `pid` None: it came to its end, or never was."""

    pid: int | None
    works: bool  # it lives, on this machine, and has the lock open
    took_ns: int  # when it took the folder (wall clock); 0: not known


def holder(results: Path) -> Holder:
    """Return who took the folder last, and whether it still works there."""
    path = results / LOCK
    try:
        text = read_regular(path, 1000).decode(errors="replace").strip()
        found = os.lstat(path)
    except OSError:  # no lock: a folder that was copied without it
        return Holder(pid=None, works=False, took_ns=0)
    if not (text.isascii() and text.isdigit()):
        return Holder(pid=None, works=False, took_ns=found.st_mtime_ns)
    pid = int(text)
    return Holder(pid=pid, works=is_alive(pid) and _has_open(pid, found), took_ns=found.st_mtime_ns)


def _has_open(pid: int, file: os.stat_result) -> bool:
    """Tell whether a process has a file open; a process of somebody else, into which nobody may look, counts as one that has.

    A pid that was used again by another process is told apart so.
    """
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except PermissionError:
        return True
    except OSError:
        return False
    return any(_is_same(f"/proc/{pid}/fd/{name}", file) for name in descriptors)


def _is_same(path: str, file: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), file)
    except OSError:  # closed meanwhile
        return False


class Following:
    """A run that is under way. A line that is not yet whole is read when it is."""

    def __init__(self, folder: Path, spec: RunSpec) -> None:
        self.folder = folder
        self._tail = Tail(folder / EVENTS)
        self._tracker = Tracker(experiment=spec.experiment, run_id=folder.parent.name)
        self._coordinator: Process | None = None  # whose clock the steps are on
        self._problems: list[str] = []
        try:
            self._tracker.begin_with(read_history(folder))
        except ResultsError as error:
            self._problems.append(str(error))

    @property
    def host(self) -> str | None:
        """The host on which it runs; None: it has written nothing yet."""
        return self._coordinator.host if self._coordinator is not None else None

    @property
    def problems(self) -> list[str]:
        """What could not be read."""
        return [*self._problems, *self._tail.problems]

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
        self._known_rows: tuple[tuple[tuple[int, int], str | None], tuple[SeedRow, ...]] | None = None
        self._took: dict[str, float] = {}
        self._so_far: tuple[SoFar, ...] = ()
        self._read_plan()

    @property
    def version(self) -> tuple[int, int]:
        """A value that differs once the plan or any record does."""
        return (self._plan_ns, self._executions.changes)

    @property
    def ended(self) -> Mapping[str, RunRecord]:
        """The records without what is large, by the path of the execution's folder."""
        return self._executions.ended

    def look(self) -> LiveState:
        """Return the state now.

        Raises:
            ResultsError: the folder is gone, or its plan is damaged.
        """
        if self._plan_changed():
            self._read_plan()
        held = holder(self.results)
        self._executions.look()
        self._follow(held)
        live = self._following.look() if self._following is not None else None
        host = self._following.host if self._following is not None and not held.works else None
        is_elsewhere = host is not None and host != os.uname().nodename
        running = self._following.folder if self._following is not None and (held.works or is_elsewhere) else None
        rows = self._rows(running.parent.name if running is not None else None)
        counts = counted_statuses(rows)
        if held.works:
            activity = Activity.WORKING
        elif is_elsewhere:
            activity = Activity.ELSEWHERE
        else:
            activity = Activity.STOPPED if any(counts[status] for status in LEFT) else Activity.FINISHED
        current = None
        if running is not None and live is not None:
            run_id = running.parent.name
            current = Current(
                run_id=run_id,
                execution_id=running.name,
                name=self._grid.names[run_id],
                position=self._positions[run_id],
                total=len(self._positions),
                metric=self._specs[run_id].experiment.objective.metric,
                live=live,
            )
        return LiveState(
            name=self.plan.name,
            plan_id=self._plan_id,
            folder=str(self.results),
            file=self.plan.path,
            activity=activity,
            seeds=self._grid.seeds,
            rows=rows,
            counts=counts,
            current=current,
            seconds_left=self._seconds_left(rows, current) if activity is Activity.WORKING else None,
            pid=held.pid,
            host=host if is_elsewhere else None,
            problems=self._problems(),
            so_far=self._so_far,
        )

    def _follow(self, held: Holder) -> None:
        """Choose the execution that is under way: the newest without a record, begun by the command that works here."""
        since = held.took_ns if held.works else 0
        found = [(begun, path) for path, begun in self._executions.open.items() if begun >= since]
        newest = Path(max(found)[1]) if found else None
        if newest is None:
            self._following = None
        elif self._following is None or self._following.folder != newest:
            self._following = Following(newest, self._specs[newest.parent.name])

    def _rows(self, running: str | None) -> tuple[SeedRow, ...]:
        key = (self.version, running)
        if self._known_rows is None or self._known_rows[0] != key:
            ended = {Path(path).parent.name: Ended("interrupted", KILLED) for path in self._executions.open}
            stand = standing(self._executions.ended.values())
            taken = ((one.run_id, self._estimate.taken(one)) for one in stand.values() if one.status != "interrupted")
            self._took = {run_id: seconds for run_id, seconds in taken if seconds is not None}
            for run_id, one in stand.items():
                if run_id not in ended or is_final(one):
                    ended[run_id] = Ended(one.status, one.reason, self._took.get(run_id))
            self._so_far = self._grid.so_far(stand, self._took)
            self._known_rows = (key, self._grid.rows(ended, running))
        return self._known_rows[1]

    def _seconds_left(self, rows: tuple[SeedRow, ...], current: Current | None) -> float | None:
        to_come = [cell.run_id for cell in cells_of(rows) if cell.status in ("planned", "interrupted")]
        return self._estimate.seconds(to_come, self._took, current.live if current is not None else None)

    def _problems(self) -> tuple[str, ...]:
        found = list(self._executions.problems.values())
        found += self._following.problems if self._following is not None else []
        more = len(found) - MOST_PROBLEMS
        return (*found[:MOST_PROBLEMS], *([f"and {more} more"] if more > 0 else []))

    def _plan_changed(self) -> bool:
        try:
            return os.stat(self.results / PLAN).st_mtime_ns != self._plan_ns
        except OSError as error:
            raise ResultsError(f"{self.results} is gone: {PLAN} cannot be read ({error.strerror})") from error

    def _read_plan(self) -> None:
        self.plan: Plan = read_plan(self.results)
        self._plan_id = self.plan.plan_id
        self._plan_ns = os.stat(self.results / PLAN).st_mtime_ns
        self._specs = {run.run_id: run.spec for run in self.plan.runs}
        self._positions = {run.run_id: position for position, run in enumerate(self.plan.to_run, 1)}
        self._grid, self._estimate = Grid(self.plan), Estimate(self.plan.runs)
        self._executions = Executions(self.results, [run.run_id for run in self.plan.runs])
        self._following, self._known_rows, self._took, self._so_far = None, None, {}, ()
