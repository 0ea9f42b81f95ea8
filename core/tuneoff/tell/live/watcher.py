"""Watch a results folder, whoever works in it: every look gives its live state, and nothing is written.

Who works there is found out without touching the lock: even to try it could refuse a command that starts. A record's head is read
once, and of the event files each look reads only what was appended since the last one.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from tuneoff.base import clock
from tuneoff.base.layout import END, EVENTS, PLAN, RUNS
from tuneoff.errors import ResultsError
from tuneoff.experiment.names import cell_name, run_name
from tuneoff.experiment.plan import Plan, PlannedRun
from tuneoff.experiment.spec import RunSpec
from tuneoff.judge.groups import job_time_and_best
from tuneoff.judge.results import Run, in_file_order, run_of
from tuneoff.record.events.schema import Process
from tuneoff.record.events.tail import SETTLED_NS, Tail
from tuneoff.record.results_folder import read_plan
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import selected_executions
from tuneoff.run.progress import LiveRun, Tracker
from tuneoff.run.run_ends import RUNNING, STATUSES, UNFINISHED, Holder, begun_ns, holder, under_way
from tuneoff.tell.live.state import (
    Activity,
    Current,
    LiveState,
    RuntimeEstimator,
    SeedCell,
    SeedRow,
    SoFar,
    cells_of,
)
from tuneoff.tell.record_head import read_head

MOST_PROBLEMS = 5
WAITING = ("planned", "interrupted")
NOT_ENDED = ("planned", RUNNING)  # statuses that have no reason


class Watcher:
    """Looks at a results folder again and again.

    `current`, set by the command that works there itself: the run that it runs, which is then not followed by its events.
    `to_run`: the runs that such a command has still to begin, also those that were done before.
    """

    def __init__(self, results: Path, plan: Plan | None = None) -> None:
        """Take the plan, or read it.

        Raises:
            ResultsError: it is not a results folder.
        """
        self.results = results
        self.current: Current | None = None
        self.to_run = set[str]()
        self._plan_ns: int | None = None
        self._following: Following | None = None
        self._key: tuple[int, Holder, str] | None = None  # what the rows follow from
        self._use(plan or self._read_plan())

    @property
    def version(self) -> str:
        """A text that differs once the plan, which runs have begun or ended, or whether somebody works there does."""
        return f"{self._plan_ns}-{self._executions.changes}-{self._holder.works}"

    @property
    def ended(self) -> Mapping[str, RunRecord]:
        """The records without what is large, by the path of the execution's folder."""
        return self._executions.ended

    @property
    def executions(self) -> list[tuple[Path, str, bool]]:
        """The executions, those under way and the newest first: folder, name with status, and whether it has ended."""
        ended = sorted(self.ended.items(), key=lambda item: item[1].started_at or "", reverse=True)
        under_way = sorted(self._executions.open, key=self._executions.open.__getitem__, reverse=True)
        states = [*((folder, "not ended") for folder in under_way), *((folder, record.status) for folder, record in ended)]
        return [
            (Path(folder), f"{run_name(self._labels[run_id], self._specs[run_id])}, {state}", state != "not ended")
            for folder, state in states
            if (run_id := Path(folder).parent.name) in self._specs
        ]

    def look(self) -> LiveState:
        """Return the state now.

        Raises:
            ResultsError: the folder is gone, or its plan is damaged.
        """
        if self._plan_ns is not None and self._plan_modified() != self._plan_ns:
            self._use(self._read_plan())
        self._holder = holder(self.results)
        self._executions.look()
        return self.state()

    def state(self) -> LiveState:
        """Return the state by the last look, with the current run as it is now."""
        current, host = (self.current, None) if self.current is not None else self._followed()
        running = current.run_id if current is not None else ""
        key = (self._executions.changes, self._holder, running)
        if key != self._key:
            self._key, self._rows = key, self._read_rows(running)
        statuses = Counter(cell.status for cell in cells_of(self._rows))
        counts = {status: statuses[status] for status in STATUSES}
        if self.current is not None or self._holder.works:
            activity = Activity.WORKING
        elif host is not None:
            activity = Activity.ELSEWHERE
        else:
            activity = Activity.STOPPED if any(counts[status] for status in UNFINISHED) else Activity.FINISHED
        again = self.to_run - {running}
        waiting = [cell.run_id for cell in cells_of(self._rows) if cell.status in WAITING or cell.run_id in again]
        seconds_left = self._estimate.seconds(waiting, self._took, current.live if current is not None else None)
        unread = [*self._executions.problems.values(), *(self._following.problems if self._following is not None else [])]
        more = [f"and {len(unread) - MOST_PROBLEMS} more"] if len(unread) > MOST_PROBLEMS else []
        return LiveState(
            name=self._plan.name,
            plan_id=self._plan.plan_id,
            folder=str(self.results),
            file=self._plan.path,
            resume_command=self._plan.resume_command(self.results),
            activity=activity,
            seeds=self._plan.seeds,
            rows=self._rows,
            counts=counts,
            current=current,
            seconds_left=seconds_left if activity is Activity.WORKING else None,
            pid=self._holder.pid,
            host=host,
            problems=(*unread[:MOST_PROBLEMS], *more),
            so_far=self._so_far,
        )

    def begin(self, run_id: str, name: str, position: int, total: int) -> None:
        """Take in that the command of this process begins a run, the `position`-th (from 1) of the `total` that it runs."""
        budget = self._specs[run_id].experiment.budget
        live = LiveRun(run_id=run_id, step="deploy", seconds=0.0, trials=budget.trials, epochs_per_trial=budget.epochs_per_trial)
        self.current = self._current(live, "", name, position, total)
        self.to_run.discard(run_id)

    def _current(self, live: LiveRun, execution_id: str, name: str, position: int, total: int) -> Current:
        return Current(
            run_id=live.run_id,
            execution_id=execution_id,
            name=name,
            position=position,
            total=total,
            metric=self._specs[live.run_id].experiment.objective.metric,
            live=live,
        )

    def _followed(self) -> tuple[Current | None, str | None]:
        """Return the run that another command has under way, and on which host if that is not this one.

        It is the newest execution without a record, begun by the command that works here; of copies it is the first.
        """
        at_work = map(Path, under_way(self._holder, self._executions.open))
        path = next(reversed([path for path in at_work if not self._specs[path.parent.name].copy]), None)
        if path is None:
            self._following = None
            return None, None
        if self._following is None or self._following.folder != path:
            self._following = Following(path, self._specs[path.parent.name])
        live, host = self._following.look(), self._following.host
        is_elsewhere = not self._holder.works and self._holder.pid is not None and host not in (None, os.uname().nodename)
        if not self._holder.works and not is_elsewhere:
            return None, None
        run_id, to_run = live.run_id, self._plan.to_run
        position = next(position for position, run in enumerate(to_run, 1) if run.run_id == run_id)
        name = run_name(self._labels[run_id], self._specs[run_id])
        return self._current(live, path.name, name, position, len(to_run)), host if is_elsewhere else None

    def _read_rows(self, running: str) -> tuple[SeedRow, ...]:
        """Return the rows by the records, and note what the runs took and what the frameworks came to."""
        unended = (self._holder.ruling.status, self._holder.ruling.reason)
        without = {Path(folder).parent.name: unended for folder in self._executions.open}
        records = selected_executions(self._executions.ended.values())
        taken = ((run_id, self._estimate.taken(record)) for run_id, record in records.items() if record.status != "interrupted")
        self._took = {run_id: seconds for run_id, seconds in taken if seconds is not None}
        rows: dict[tuple[str, str], tuple[PlannedRun, dict[int, SeedCell]]] = {}
        frameworks: dict[str, list[Run]] = {}
        for planned in in_file_order(self._plan):
            if planned.same_as is not None:
                continue
            run, label, run_id = run_of(planned, records, without), self._labels[planned.run_id], planned.run_id
            frameworks.setdefault(label, []).append(run)
            status = RUNNING if run_id == running else run.status
            rows.setdefault((planned.label, run.spec.scope_key()), (planned, {}))[1][run.seed] = SeedCell(
                run_id=run_id,
                name=run_name(label, run.spec),
                seed=run.seed,
                status=status,
                reason=run.reason if status not in NOT_ENDED else None,
                seconds=self._took.get(run_id),
            )
        so_far = (SoFar(label, *job_time_and_best(runs)) for label, runs in frameworks.items())
        self._so_far = tuple(figures for figures in so_far if (figures.seconds, figures.best) != (None, None))
        return tuple(
            SeedRow(
                text=cell_name(self._labels[first.run_id], first.spec.experiment),
                adapter=self._labels[first.run_id],
                cells=tuple(cells.get(seed) for seed in self._plan.seeds),
            )
            for first, cells in rows.values()
        )

    def _read_plan(self) -> Plan:
        plan = read_plan(self.results)
        self._plan_ns = self._plan_modified()
        return plan

    def _plan_modified(self) -> int:
        try:
            return os.stat(self.results / PLAN).st_mtime_ns
        except OSError as error:
            raise ResultsError(f"{self.results} is gone: {PLAN} cannot be read ({error.strerror})") from error

    def _use(self, plan: Plan) -> None:
        self._plan = plan
        labels = plan.label_texts
        self._labels = {run.run_id: labels[run.label] for run in plan.runs}
        self._specs = {run.run_id: run.spec for run in plan.runs}
        self._estimate = RuntimeEstimator(plan.runs)
        self._executions = Executions(self.results, self._specs)
        self._following = None
        self._holder = holder(self.results)
        self._key = None


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
        writer = self._coordinator
        if writer is None or writer.boot_id == clock.boot_id():
            return self._tracker.live(clock.monotonic_ns())
        # the moment on the monotonic clock of the run's host, by its anchor
        return self._tracker.live(writer.anchor_monotonic_ns + time.time_ns() - writer.anchor_wall_ns)


class Executions:
    """Follows the folders of the planned runs. A look costs one `stat` per run, and one more per execution that has not ended."""

    def __init__(self, results: Path, run_ids: Iterable[str]) -> None:
        self.ended: dict[str, RunRecord] = {}  # by the path of the execution's folder
        self.open: dict[str, int] = {}  # the same -> when it was begun (wall clock, ns): those that have not ended
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
                now = time.time_ns()
                try:
                    with os.scandir(folder) as entries:
                        paths = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
                except OSError:
                    continue
                for path in paths:
                    if path not in self.ended and path not in self.open and path not in self.problems:
                        self.open[path] = begun_ns(path)
                        self.changes += 1
                self._scanned[run_id] = (modified, now)
        for folder in list(self.open):
            if os.path.lexists(os.path.join(folder, END)):
                try:
                    self.ended[folder] = read_head(Path(folder))
                except ResultsError as error:
                    self.problems[folder] = str(error)
            elif os.path.isdir(folder):
                continue
            del self.open[folder]  # it has ended, or was removed
            self.changes += 1
