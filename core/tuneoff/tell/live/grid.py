"""The map of a plan: a row per adapter, sampler, pruner and variant, a column per seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tuneoff.experiment.names import cell_name, emulated_label, label_texts, run_name
from tuneoff.experiment.plan import Plan
from tuneoff.judge.order import in_file_order
from tuneoff.tell.live.state import SeedCell, SeedRow


class Ended(NamedTuple):
    """What a run came to."""

    status: str
    reason: str | None = None


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
        rows: dict[tuple[str, str], tuple[str, str, dict[int, str]]] = {}  # text, adapter, run id by seed
        for run in in_file_order(plan):
            text = cell_name(shown[run.run_id], run.spec.experiment)
            row = rows.setdefault((run.label, run.spec.scope_key()), (text, shown[run.run_id], {}))
            row[2][run.spec.seed] = run.run_id
        self._rows = list(rows.values())

    def rows(self, ended: Mapping[str, Ended], running: str | None) -> tuple[SeedRow, ...]:
        """Return the rows with what each run came to. `running`: the run that runs now."""

        def cell(run_id: str, seed: int) -> SeedCell:
            if run_id == running:
                end = Ended("running")
            elif run_id in self._skipped:
                end = Ended("skipped", self._skipped[run_id])
            else:
                end = ended.get(run_id, Ended("planned"))
            return SeedCell(run_id=run_id, name=self.names[run_id], seed=seed, status=end.status, reason=end.reason)

        return tuple(
            SeedRow(
                text=text,
                adapter=adapter,
                cells=tuple(cell(by_seed[seed], seed) if seed in by_seed else None for seed in self.seeds),
            )
            for text, adapter, by_seed in self._rows
        )
