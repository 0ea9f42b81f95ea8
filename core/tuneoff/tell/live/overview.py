"""The live state of a results folder by its plan and its records. Whoever knows what runs now adds that."""

from __future__ import annotations

from pathlib import Path

from tuneoff.experiment.plan import Plan
from tuneoff.record.run_ends import holder
from tuneoff.record.store import standing
from tuneoff.tell.live.executions import Executions
from tuneoff.tell.live.state import (
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


class Overview:
    """What each run came to, in this command and in earlier ones. `executions`: of the folder, as they were last looked at."""

    def __init__(self, plan: Plan, results: Path) -> None:
        self.plan, self.results = plan, results
        self.grid = Grid(plan)
        self.specs = {run.run_id: run.spec for run in plan.runs}
        self.executions = Executions(results, self.specs)
        self.to_run: frozenset[str] = frozenset()  # by this command, those that were done before too
        self._estimate = Estimate(plan.runs)
        self._plan_id = plan.plan_id
        self._told: dict[str, Ended] = {}
        self._known: tuple[tuple[int, str | None], tuple[SeedRow, ...]] | None = None
        self._took: dict[str, float] = {}
        self._so_far: tuple[SoFar, ...] = ()

    def end(self, run_id: str, end: Ended) -> None:
        """Take in what a run came to, whatever its record says."""
        self._told[run_id] = end
        self._known = None

    def rows(self, running: str | None) -> tuple[SeedRow, ...]:
        """Return the rows. `running`: the run that runs now."""
        key = (self.executions.changes, running)
        if self._known is None or self._known[0] != key:
            left = holder(self.results).left
            ended = {Path(path).parent.name: Ended(left.status, left.reason) for path in self.executions.open}
            stand = standing(self.executions.ended.values())
            taken = ((one.run_id, self._estimate.taken(one)) for one in stand.values() if one.status != "interrupted")
            self._took = {run_id: end.seconds for run_id, end in self._told.items() if end.seconds is not None}
            self._took |= {run_id: seconds for run_id, seconds in taken if seconds is not None}
            ended |= {run_id: Ended(one.status, one.reason, self._took.get(run_id)) for run_id, one in stand.items()}
            self._so_far = self.grid.so_far(stand)
            self._known = (key, self.grid.rows({**ended, **self._told}, running))
        return self._known[1]

    def state(
        self,
        rows: tuple[SeedRow, ...],
        activity: Activity,
        current: Current | None,
        *,
        pid: int | None,
        host: str | None = None,
        problems: tuple[str, ...] = (),
    ) -> LiveState:
        """Return the state with these rows, those of `rows`."""
        again = self.to_run - self._told.keys() - {current.run_id if current is not None else ""}
        to_come = [cell.run_id for cell in cells_of(rows) if cell.status in ("planned", "interrupted") or cell.run_id in again]
        left = self._estimate.seconds(to_come, self._took, current.live if current is not None else None)
        return LiveState(
            name=self.plan.name,
            plan_id=self._plan_id,
            folder=str(self.results),
            file=self.plan.path,
            resume_command=self.plan.resume_command(self.results),
            activity=activity,
            seeds=self.grid.seeds,
            rows=rows,
            counts=counted_statuses(rows),
            current=current,
            seconds_left=left if activity is Activity.WORKING else None,
            pid=pid,
            host=host,
            problems=problems,
            so_far=self._so_far,
        )
