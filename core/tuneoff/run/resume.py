"""What is run again of a results folder: interrupted runs that go on, and blocks that are repeated for reasons of the machine.

Of a run that goes on the new execution takes over the files of the one before. A block is repeated whole, by the machine's flags
alone, blind to any result.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuneoff.base.files import pinned, regular
from tuneoff.base.format import counted
from tuneoff.errors import ResultsError, UnsupportedError
from tuneoff.experiment.accounting.declared import FILE_NAME as ACCOUNTING
from tuneoff.experiment.names import run_name
from tuneoff.experiment.plan import Plan
from tuneoff.experiment.spec import Objective, RunSpec
from tuneoff.measure.resumed import read_segments
from tuneoff.record.events.writer import FOLDER as EVENTS
from tuneoff.record.history import EARLIER, FILE_NAME, EarlierExecution, History, read_history
from tuneoff.record.join import history_of, is_finished
from tuneoff.record.run_record import RunRecord, TrialRecord
from tuneoff.record.samples.schema import FILE_NAME as SAMPLES
from tuneoff.record.store import REPEAT, RUNS, broken_seals, is_final, read_run, read_runs, repeat_number, standing, write_bytes
from tuneoff.registry import adapter_class
from tuneoff.run.machine import PASSING
from tuneoff.run.trial.checkpoint import FOLDER as CHECKPOINTS
from tuneoff.run.trial.checkpoint import checkpoint_path


def to_continue(plan: Plan, results: Path) -> dict[str, Path]:
    """Return the folder of the latest execution of each run that is not done and has finished trials, by run id.

    A run none of whose trials had finished begins anew, and then it is as if it had never been interrupted.

    Raises:
        ResultsError: a record cannot be read.
        UnsupportedError: the adapter of such a run cannot continue it.
    """
    known = standing(read_runs(results))
    found = {}
    for run in plan.counted:
        record = known.get(run.run_id)
        if run.skip_reason is not None or record is None or is_final(record) or not any(map(is_finished, record.trials)):
            continue
        reason = adapter_class(run.spec.adapter).refuse_continue(run.spec)
        if reason is not None:
            name = run_name(run.label, run.spec)
            raise UnsupportedError(f"{name} cannot be continued: {reason}; leave out --continue, then it is repeated whole")
        found[run.run_id] = results / RUNS / record.run_id / record.execution_id
    return found


def adopt(earlier: Path, folder: Path, spec: RunSpec) -> History:
    """Take over an interrupted execution's files into the folder of the new one, and return what it begins with.

    The earlier folder stays as it is: its event files and samples are hard links or copies below `earlier/<execution id>/`,
    with those that it had taken over itself. `spec`: the run's, as it is planned; that of the earlier record is not believed.

    Raises:
        ResultsError: a file of the earlier execution is not as it was sealed, or cannot be copied.
    """
    record = read_run(earlier)
    broken = broken_seals(earlier, record.sealed)
    if broken:
        raise ResultsError(f"{earlier} cannot be continued: {broken[0]}; restore it, or leave out --continue")
    last = EarlierExecution(execution_id=record.execution_id, status=record.status, reason=record.reason, charged=record.charged)
    executions = (*read_history(earlier).executions, last)
    try:
        for file in record.sealed:
            if file.name.startswith(f"{EARLIER}/"):
                _link(earlier / file.name, folder / file.name)
            elif file.name.startswith(f"{EVENTS}/") or file.name in (SAMPLES, ACCOUNTING):
                _link(earlier / file.name, folder / EARLIER / record.execution_id / file.name)
        derived = [segment.record for segment in read_segments(folder, spec, executions)]
        history = history_of(derived)
        for trial in best_trials(spec.experiment.objective, [trial for one in derived for trial in one.trials]):
            checkpoint = checkpoint_path(earlier, trial.trial)
            if os.path.lexists(checkpoint):
                _link(checkpoint, checkpoint_path(folder, trial.trial))
    except OSError as error:
        raise ResultsError(f"{error.filename or folder} cannot be written: {error.strerror}; free space") from error
    write_bytes(folder / FILE_NAME, (json.dumps(history.to_json(), indent=1) + "\n").encode())
    return history


def best_trials(objective: Objective, trials: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Return the completed trials of the best value: one of them is the best so far, whatever breaks the tie."""
    completed = [trial for trial in trials if trial.state == "completed" and trial.value is not None]
    values = [trial.value for trial in completed if trial.value is not None]
    if not values:
        return []
    best = max(values) if objective.mode == "max" else min(values)
    return [trial for trial in completed if trial.value == best]


def kept_checkpoints(record: RunRecord) -> set[str]:
    """Return the names of the checkpoints that a continued run may yet need of an execution that did not come to its end."""
    best = best_trials(record.run_spec().experiment.objective, record.trials)
    return {checkpoint_path(Path(CHECKPOINTS), trial.trial).name for trial in best}


def _link(source: Path, target: Path) -> None:
    with regular(source) as file, pinned(target.parent, make=True) as place:
        try:
            os.link(file, place / target.name)
        except FileExistsError:  # nothing is copied over it, nor through it
            raise
        except OSError:  # another file system, or one without links
            shutil.copy2(file, place / target.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """A block (all runs of a seed) that is repeated for the `number`th time; `because`: runs by the flag that they had."""

    block: int
    seed: int
    number: int
    because: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"number": self.number, "because": dict(self.because)}

    @property
    def text(self) -> str:
        reasons = ", ".join(f"{name} in {counted(count, 'run')}" for name, count in self.because.items())
        return f"seed {self.seed}: {reasons or 'for reasons of the machine'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """What was repeated so far in a results folder; `unfinished` blocks mix executions until they are resumed."""

    blocks: int
    repeats: tuple[Repeat, ...] = ()
    unfinished: tuple[Repeat, ...] = ()
    flagged: tuple[int, ...] = ()  # seeds of the blocks that still hold a flagged run
    flags: Mapping[str, int] = field(default_factory=dict)  # runs of these blocks by the flag that they have
    set_aside: int = 0  # executions that stand for no run, which are kept and count nowhere


def flagged_blocks(plan: Plan, flags: Mapping[str, frozenset[str]], numbers: Mapping[int, int]) -> dict[str, Repeat]:
    """Return the repetition of each run in a block that holds a flagged run.

    `flags`: names by run id. `numbers`: how often a block was repeated already. Nothing else is looked at: no status, no
    time, no value.
    """
    found = {}
    for block, runs in _blocks(plan).items():
        because = Counter(name for run_id in runs for name in sorted(flags.get(run_id, frozenset()) & PASSING))
        if because:
            repeat = Repeat(block=block, seed=_seed(plan, block), number=numbers.get(block, 0) + 1, because=dict(because))
            found.update(dict.fromkeys(runs, repeat))
    return found


def to_repeat(plan: Plan, records: Sequence[RunRecord], *, flagged: bool) -> dict[str, Repeat]:
    """Return the repetition of each run that is to be run for one: of blocks begun and not ended; `flagged`: of flagged ones."""
    begun = _unfinished(plan, records)
    found = {run_id: repeat for run_id, repeat in begun.items() if run_id not in _ended(records, repeat.number)}
    if flagged:
        blocks = {repeat.block for repeat in begun.values()}
        numbers = {repeat.block: repeat.number for repeat in _repetitions(plan, records)}
        new = flagged_blocks(plan, _flags(records), numbers)
        found.update({run_id: repeat for run_id, repeat in new.items() if repeat.block not in blocks})
    return found


def repeated(plan: Plan, records: Sequence[RunRecord]) -> Repeated:
    """Return what was repeated in a results folder, for the lines below its table."""
    blocks = _blocks(plan)
    known = {(repeat.block, repeat.number): repeat for repeat in _repetitions(plan, records)}
    stand = {record.execution_id for record in standing(records).values()}
    touched = {block for block, _ in known}
    runs = {run_id for block in touched for run_id in blocks.get(block, ())}
    left = flagged_blocks(plan, _flags(records), {})
    return Repeated(
        blocks=len(blocks),
        repeats=tuple(known.values()),
        unfinished=tuple({repeat.block: repeat for repeat in _unfinished(plan, records).values()}.values()),
        flagged=tuple(sorted({repeat.seed for repeat in left.values()})),
        flags=sum((Counter(repeat.because) for repeat in {one.block: one for one in left.values()}.values()), Counter()),
        set_aside=sum(record.run_id in runs and record.execution_id not in stand for record in records),
    )


def repeat_lines(found: Repeated) -> list[str]:
    """Return the lines below the table; nothing where no run was flagged and nothing repeated."""
    lines = []
    of = counted(found.blocks, "block")
    if found.repeats:
        count = len({repeat.block for repeat in found.repeats})
        lines.append(
            f"Repeated whole for reasons of the machine, decided blind to results: {count} of {of}; "
            f"{counted(found.set_aside, 'further execution')} kept, and counted nowhere."
        )
        lines += [f"  repetition {repeat.number} of {repeat.text}" for repeat in found.repeats]
    for repeat in found.unfinished:
        lines.append(f"The repetition of seed {repeat.seed} is not complete, so its runs are of two executions: add --resume.")
    if found.flagged:
        names = ", ".join(f"{name}: {count}" for name, count in found.flags.items())
        lines.append(
            f"{len(found.flagged)} of {of} hold{'s' if len(found.flagged) == 1 else ''} a run with a flag of the machine "
            f"({names}); once all runs are done, `--resume --retry flagged` repeats them whole"
        )
    return lines


def repeat_json(found: Repeated) -> dict[str, Any]:
    """Return the same as JSON values."""
    return {
        "blocks": found.blocks,
        "repeated": [{"seed": repeat.seed, **repeat.to_json()} for repeat in found.repeats],
        "unfinished_seeds": [repeat.seed for repeat in found.unfinished],
        "flagged_seeds": list(found.flagged),
        "set_aside": found.set_aside,
    }


def _blocks(plan: Plan) -> dict[int, list[str]]:
    """Return the ids of the runs that are executed, by the block of their seed, warm-ups left out."""
    blocks: dict[int, list[str]] = {}
    for run in plan.counted:
        if run.skip_reason is None:
            blocks.setdefault(run.block, []).append(run.run_id)
    return blocks


def _seed(plan: Plan, block: int) -> int:
    return next(run.spec.seed for run in plan.counted if run.block == block)


def _flags(records: Sequence[RunRecord]) -> dict[str, frozenset[str]]:
    """Return the names of the flags of the execution that stands for each run."""
    return {record.run_id: frozenset(flag.name for flag in record.flags) for record in standing(records).values()}


def _repetitions(plan: Plan, records: Sequence[RunRecord]) -> list[Repeat]:
    """Return the repetition that each execution belongs to, if to any, block by block with rising numbers."""
    runs = {run.run_id: run for run in plan.counted}
    found = []
    for record in records:
        stored, number, run = record.environment.get(REPEAT), repeat_number(record), runs.get(record.run_id)
        if run is not None and number > 0 and isinstance(stored, Mapping):
            because = stored.get("because")
            known = because if isinstance(because, Mapping) else {}
            found.append(Repeat(block=run.block, seed=run.spec.seed, number=number, because=known))
    return sorted(found, key=lambda repeat: (repeat.block, repeat.number))


def _ended(records: Sequence[RunRecord], number: int) -> set[str]:
    return {record.run_id for record in records if repeat_number(record) >= number and is_final(record)}


def _unfinished(plan: Plan, records: Sequence[RunRecord]) -> dict[str, Repeat]:
    """Return the last repetition of each block in which not every run came to an end, by run id."""
    latest = {repeat.block: repeat for repeat in _repetitions(plan, records)}
    found: dict[str, Repeat] = {}
    for block, runs in _blocks(plan).items():
        repeat = latest.get(block)
        if repeat is not None and not set(runs) <= _ended(records, repeat.number):
            found.update(dict.fromkeys(runs, repeat))
    return found
