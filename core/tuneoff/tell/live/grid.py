"""The map of a plan: a row per adapter, sampler, pruner and variant, a column per seed."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import NamedTuple

from tuneoff.experiment.names import cell_name, emulated_label, label_texts, run_name
from tuneoff.experiment.plan import Plan
from tuneoff.judge.order import in_file_order
from tuneoff.record.run_record import RunRecord
from tuneoff.tell.live.executions import BEST
from tuneoff.tell.live.state import SeedCell, SeedRow, SoFar


class Ended(NamedTuple):
    """What a run came to."""

    status: str
    reason: str | None = None
    seconds: float | None = None


class Grid:
    """The rows of a plan in the file's order. `names`: of each run, as progress has them, warm-ups included."""

    def __init__(self, plan: Plan) -> None:
        labels = label_texts((run.label, run.spec.adapter) for run in plan.runs)
        shown = {
            run.run_id: emulated_label(labels[run.label], run.spec) if run.emulated else labels[run.label] for run in plan.runs
        }
        self.names = {run.run_id: run_name(shown[run.run_id], run.spec) for run in plan.runs}
        self.seeds = tuple(dict.fromkeys(run.spec.seed for run in plan.counted))
        self._skipped = {run.run_id: run.skip_reason for run in plan.counted if run.skip_reason is not None}
        self._frameworks: dict[str, dict[str, str]] = {}  # run ids and modes of the objective, by label
        rows: dict[tuple[str, str], tuple[str, str, dict[int, str]]] = {}  # text, adapter, run id by seed
        for run in in_file_order(plan):
            if run.same_as is not None:
                continue
            text = cell_name(shown[run.run_id], run.spec.experiment)
            row = rows.setdefault((run.label, run.spec.scope_key()), (text, shown[run.run_id], {}))
            row[2][run.spec.seed] = run.run_id
            self._frameworks.setdefault(shown[run.run_id], {})[run.run_id] = run.spec.experiment.objective.mode
        self._rows = list(rows.values())

    def so_far(self, records: Mapping[str, RunRecord], took: Mapping[str, float]) -> tuple[SoFar, ...]:
        """Return what the frameworks' runs that are done came to."""
        found = []
        for label, modes in self._frameworks.items():
            done = [run_id for run_id in modes if run_id in took and run_id in records and records[run_id].status == "done"]
            values = [records[run_id].metrics.get(BEST) for run_id in done]
            known = [value.value for value in values if value is not None and value.value is not None]
            best = (max if "max" in modes.values() else min)(known) if known else None
            if done:
                found.append(SoFar(label=label, seconds=median(took[run_id] for run_id in done), best=best))
        return tuple(found)

    def rows(self, ended: Mapping[str, Ended], running: str | None) -> tuple[SeedRow, ...]:
        """Return the rows with what each run came to. `running`: the run that runs now."""

        def cell(run_id: str, seed: int) -> SeedCell:
            if run_id == running:
                end = Ended("running")
            elif run_id in self._skipped:
                end = Ended("skipped", self._skipped[run_id])
            else:
                end = ended.get(run_id, Ended("planned"))
            name = self.names[run_id]
            return SeedCell(run_id=run_id, name=name, seed=seed, status=end.status, reason=end.reason, seconds=end.seconds)

        return tuple(
            SeedRow(
                text=text,
                adapter=adapter,
                cells=tuple(cell(by_seed[seed], seed) if seed in by_seed else None for seed in self.seeds),
            )
            for text, adapter, by_seed in self._rows
        )
