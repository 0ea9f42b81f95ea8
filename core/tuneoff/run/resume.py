"""Go on with interrupted runs: which ones can be, what their files give the new execution, what is left of the budget."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from tuneoff.base.files import pinned, regular
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
from tuneoff.record.store import RUNS, broken_seals, is_final, read_run, read_runs, standing, write_bytes
from tuneoff.registry import adapter_class
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
        if run.skip_reason is not None or record is None or is_final(record) or not has_finished_trials(record):
            continue
        reason = adapter_class(run.spec.adapter).refuse_continue(run.spec)
        if reason is not None:
            name = run_name(run.label, run.spec)
            raise UnsupportedError(f"{name} cannot be continued: {reason}; leave out --continue, then it is repeated whole")
        found[run.run_id] = results / RUNS / record.run_id / record.execution_id
    return found


def has_finished_trials(record: RunRecord) -> bool:
    """Tell whether there is something to take over: without one finished trial a run begins anew."""
    return any(is_finished(trial) for trial in record.trials)


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
