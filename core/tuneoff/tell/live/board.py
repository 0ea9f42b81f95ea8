"""The live state of the matrix that this process runs, from what its listener is told."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from tuneoff.experiment.plan import Plan
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import standing
from tuneoff.run.listener import LiveRun
from tuneoff.tell.live.estimate import Estimate
from tuneoff.tell.live.executions import Executions
from tuneoff.tell.live.grid import Ended, Grid
from tuneoff.tell.live.state import Activity, Current, LiveState, cells_of, counted_statuses, with_status


class Board:
    """Takes in what happens. `results`: the records of what ended, in this command and earlier ones, are read from there."""

    def __init__(self, plan: Plan, results: Path) -> None:
        self._plan, self._results = plan, results
        self._grid, self._estimate = Grid(plan), Estimate(plan.runs)
        self._executions = Executions(results, [run.run_id for run in plan.runs])
        self._specs = {run.run_id: run.spec for run in plan.runs}
        self._took: dict[str, float] = {}
        self._known: dict[str, RunRecord] = {}
        self._read()
        self._rows = self._grid.rows({one.run_id: Ended(one.status, one.reason) for one in self._known.values()}, None)
        self._places = {cell.run_id: place for place, row in enumerate(self._rows) for cell in row.cells if cell is not None}
        self._plan_id = plan.plan_id
        self._current: Current | None = None

    def started(self, run_id: str, position: int, total: int, label: str) -> None:
        """Take in that a run starts."""
        experiment = self._specs[run_id].experiment
        budget = experiment.budget
        live = LiveRun(run_id=run_id, step="deploy", seconds=0.0, trials=budget.trials, epochs_per_trial=budget.epochs_per_trial)
        self._current = Current(
            run_id=run_id,
            execution_id="",
            name=label,
            position=position,
            total=total,
            metric=experiment.objective.metric,
            live=live,
        )
        self._set(run_id, "running")

    def progressed(self, live: LiveRun) -> None:
        """Take in where the current run stands."""
        if self._current is not None:
            self._current = replace(self._current, live=live)

    def ended(self, status: str, reason: str | None, seconds: float) -> None:
        """Take in that the current run ended; its record says more."""
        assert self._current is not None
        run_id = self._current.run_id
        self._took[run_id] = seconds
        self._current = None
        self._read()
        self._set(run_id, status, reason)

    def _read(self) -> None:
        """Read the records that are new."""
        self._executions.look()
        self._known = dict(standing(self._executions.ended.values()))
        taken = ((one.run_id, self._estimate.taken(one)) for one in self._known.values() if one.status != "interrupted")
        self._took |= {run_id: seconds for run_id, seconds in taken if seconds is not None}

    def state(self) -> LiveState:
        """Return the state now."""
        to_come = [cell.run_id for cell in cells_of(self._rows) if cell.status in ("planned", "interrupted")]
        live = self._current.live if self._current is not None else None
        return LiveState(
            name=self._plan.name,
            plan_id=self._plan_id,
            folder=str(self._results),
            file=self._plan.path,
            activity=Activity.WORKING,
            seeds=self._grid.seeds,
            rows=self._rows,
            counts=counted_statuses(self._rows),
            current=self._current,
            seconds_left=self._estimate.seconds(to_come, self._took, live),
            pid=os.getpid(),
            so_far=self._grid.so_far(self._known, self._took),
        )

    def _set(self, run_id: str, status: str, reason: str | None = None) -> None:
        place = self._places.get(run_id)
        if place is not None:  # a warm-up is in no row
            rows = list(self._rows)
            rows[place] = with_status(rows[place], run_id, status, reason)
            self._rows = tuple(rows)
