"""Bit for bit: the same configuration with the same seed gives the same numbers, in any version of a framework."""

from __future__ import annotations

from collections.abc import Sequence

from tuneoff.answers import cells as answers
from tuneoff.choose.changes.model import Exact, Matched
from tuneoff.controls.cells import Cell, Setting
from tuneoff.controls.same_configuration import SAMPLER, same_configurations
from tuneoff.records.model import RunRecord

OLD, NEW = "A", "B"


def exact(found: Sequence[Matched], *, same_machine: bool) -> list[Exact]:
    """Return the comparison of each matched entry that has runs to compare."""
    return [one for group in found if (one := _of_group(group, same_machine)) is not None]


def _of_group(group: Matched, same_machine: bool) -> Exact | None:
    old, new = _done(group.old), _done(group.new)
    shared = [seed for seed in old if seed in new]
    if not shared:
        return None
    cells = [_cell(label, {seed: runs[seed] for seed in shared}) for label, runs in ((OLD, old), (NEW, new))]
    # the sampler is not asked: whatever proposed a configuration, its numbers depend on it, the seed and the machine alone
    setting = Setting(sampler=SAMPLER, pruner="", variant="", cells=tuple(cells))
    control = same_configurations([setting])[0]
    compared = next(one for one in control.adapters if not one.is_reference)
    first = next(iter(control.differences), None)
    example = ""
    if first is not None:
        values = " and ".join(f"{' '.join(labels)} {value}" for value, labels in first.values.items())
        example = f"seed {first.seed}, configuration {first.configuration}, epoch {first.epoch}, {first.metric}: {values}"
    return Exact(
        name=group.name,
        configurations=compared.configurations,
        tried=(_tried(cells[0]), _tried(cells[1])),
        values=compared.values,
        unequal=compared.unequal,
        example=example,
        is_due=same_machine,
    )


def _cell(label: str, runs: dict[int, RunRecord]) -> Cell:
    return Cell(label=label, entry=label, spec=next(iter(runs.values())).run_spec(), runs=runs)


def _tried(cell: Cell) -> str:
    return str(sum(len({trial.digest for trial in run.trials}) for run in cell.runs.values()))


def _done(cell: answers.Cell) -> dict[int, RunRecord]:
    return {run.seed: run.record for run in cell.runs if run.record is not None and run.ref.status == "done"}
