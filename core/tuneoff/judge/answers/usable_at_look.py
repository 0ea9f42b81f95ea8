"""When claims across tasks may be made: once all planned seeds of all tasks have ended, or at a look that the plan declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tuneoff.base.format import counted
from tuneoff.judge.runs import Group

Cells = Mapping[str, Mapping[str, Group]]  # by label and task


def settled(cells: Cells, looks: Sequence[int]) -> tuple[dict[str, dict[str, Group]], str | None]:
    """Return the cells with the runs that a claim may rest on, and why none may be made yet.

    It is the rule of verdicts within a task: who claims whenever one more run has ended finds something in equal adapters too.
    """
    kept = {label: dict(of) for label, of in cells.items()}
    every = [cell for of in cells.values() for cell in of.values()]
    if not looks:
        planned = sum(len(cell.by_seed) for cell in every)
        ended = sum(run.has_ended for cell in every for run in cell.by_seed.values())
        waiting = None if ended == planned else f"{ended} of {counted(planned, 'planned run')} of these tasks have ended"
        return kept, waiting
    reached = [look for look in looks if all(_has_reached(cell, look) for cell in every)]
    if not reached:
        return kept, f"the seeds of the first look, {min(looks)}, have not ended in every task"
    return {label: {task: _at(cell, max(reached)) for task, cell in of.items()} for label, of in kept.items()}, None


def _has_reached(cell: Group, look: int) -> bool:
    first = list(cell.by_seed.values())[:look]
    return len(first) == look and all(run.has_ended for run in first)


def _at(cell: Group, look: int) -> Group:
    return replace(cell, runs=tuple(cell.by_seed.values())[:look])
