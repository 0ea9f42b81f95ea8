"""Blocks that are repeated for reasons of the machine: whole, by the machine's flags alone, blind to any result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tuneoff.base.format import counted
from tuneoff.experiment.plan import Plan, PlannedRun
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import REPEAT, is_final, repeat_number, selected_executions
from tuneoff.run.machine import PASSING


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """A block (all runs of a seed) that is repeated for the `number`th time; `because`: runs by the flag that they had."""

    block: int
    seed: int
    number: int
    because: Mapping[str, int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        reasons = ", ".join(f"{name} in {counted(count, 'run')}" for name, count in self.because.items())
        return f"seed {self.seed}: {reasons or 'for reasons of the machine'}"


def flagged_blocks(plan: Plan, flags: Mapping[str, frozenset[str]], numbers: Mapping[int, int]) -> dict[str, Repeat]:
    """Return the repetition of each run in a block that holds a flagged run.

    `flags`: names by run id. `numbers`: how often a block was repeated already. Nothing else is looked at: no status, no
    time, no value.
    """
    repeats = {}
    for block, runs in _blocks(plan).items():
        because = Counter(name for run in runs for name in sorted(flags.get(run.run_id, frozenset()) & PASSING))
        if because:
            repeat = Repeat(block=block, seed=runs[0].spec.seed, number=numbers.get(block, 0) + 1, because=dict(because))
            repeats.update({run.run_id: repeat for run in runs})
    return repeats


def to_repeat(plan: Plan, records: Sequence[RunRecord], *, flagged: bool) -> dict[str, Repeat]:
    """Return the repetition of each run that is to be run for one: of blocks begun and not ended; `flagged`: of flagged ones."""
    begun, numbers = _unfinished(plan, records), {repeat.block: repeat.number for repeat in _repetitions(plan, records)}
    new = flagged_blocks(plan, _flags(records), numbers) if flagged else {}
    return {run_id: repeat for run_id, repeat in {**new, **begun}.items() if run_id not in _ended(records, repeat.number)}


def of_blocks(repeats: Mapping[str, Repeat]) -> tuple[Repeat, ...]:
    """Return the repetitions of runs, once for each block."""
    return tuple({repeat.block: repeat for repeat in repeats.values()}.values())


def repeat_lines(plan: Plan, records: Sequence[RunRecord]) -> list[str]:
    """Return the lines below the table on what was repeated; an unfinished block mixes executions until it is resumed."""
    repetitions = {(repeat.block, repeat.number): repeat for repeat in _repetitions(plan, records)}
    lines = [f"  repetition {repeat.number} of {repeat.text}" for repeat in repetitions.values()]
    if lines:
        count = f"{len({block for block, _ in repetitions})} of {counted(len(_blocks(plan)), 'block')}"
        lines.insert(0, f"Repeated whole for reasons of the machine, decided blind to results: {count}.")
    for repeat in of_blocks(_unfinished(plan, records)):
        lines.append(f"The repetition of seed {repeat.seed} is not complete, so its runs are of two executions: add --resume.")
    return lines


def _blocks(plan: Plan) -> dict[int, list[PlannedRun]]:
    """Return the runs that are executed, by the block of their seed, warm-ups left out."""
    blocks: dict[int, list[PlannedRun]] = {}
    for run in plan.counted:
        if run.skip_reason is None:
            blocks.setdefault(run.block, []).append(run)
    return blocks


def _flags(records: Sequence[RunRecord]) -> dict[str, frozenset[str]]:
    """Return the names of the flags of the execution that stands for each run."""
    return {record.run_id: frozenset(flag.name for flag in record.flags) for record in selected_executions(records).values()}


def _repetitions(plan: Plan, records: Sequence[RunRecord]) -> list[Repeat]:
    """Return the repetition that each execution belongs to, if to any, block by block with rising numbers."""
    runs = {run.run_id: run for run in plan.counted}
    repetitions = []
    for record in records:
        number, run = repeat_number(record), runs.get(record.run_id)
        if run is not None and number > 0:
            because = record.environment[REPEAT].get("because")
            flags = because if isinstance(because, Mapping) else {}
            repetitions.append(Repeat(block=run.block, seed=run.spec.seed, number=number, because=flags))
    return sorted(repetitions, key=lambda repeat: (repeat.block, repeat.number))


def _ended(records: Sequence[RunRecord], number: int) -> set[str]:
    return {record.run_id for record in records if repeat_number(record) >= number and is_final(record)}


def _unfinished(plan: Plan, records: Sequence[RunRecord]) -> dict[str, Repeat]:
    """Return the last repetition of each block in which not every run came to an end, by run id."""
    latest = {repeat.block: repeat for repeat in _repetitions(plan, records)}
    unfinished: dict[str, Repeat] = {}
    for block, runs in _blocks(plan).items():
        repeat = latest.get(block)
        if repeat is not None and not {run.run_id for run in runs} <= _ended(records, repeat.number):
            unfinished.update({run.run_id: repeat for run in runs})
    return unfinished
