"""Make an execution's folder: all that the coordinator and the trials read."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneoff.base.files import pinned, replacing
from tuneoff.base.process_limits import SlotLimits
from tuneoff.experiment.spec import RunSpec, run_spec_to_json
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.record.events.writer import FOLDER as EVENTS
from tuneoff.record.history import History
from tuneoff.record.layout import SPEC
from tuneoff.run.resume import budget_left

MEGABYTE = 10**6
NO_HISTORY = History()


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One execution of a run: its identity in the outside world and its folder."""

    spec: RunSpec
    execution_id: str
    folder: Path


def new_execution(spec: RunSpec, runs_folder: Path) -> Execution:
    """Make `<runs_folder>/<run id>/<execution id>/` with its `events` folder; the execution id is new in every call."""
    execution_id = f"{spec.run_id}-{os.urandom(3).hex()}"
    folder = runs_folder / spec.run_id / execution_id
    with pinned(runs_folder / spec.run_id, make=True) as run:
        (run / execution_id).mkdir()  # nobody else's: what is written below it needs no further care
        (run / execution_id / EVENTS).mkdir()
    return Execution(spec=spec, execution_id=execution_id, folder=folder)


def is_named_for(spec: RunSpec, folder: Path) -> bool:
    """Tell whether a folder has a name that `new_execution` gives to an execution of this run."""
    return folder.parent.name == spec.run_id and re.fullmatch(rf"{spec.run_id}-[0-9a-f]{{6}}", folder.name) is not None


def write_inputs(execution: Execution, limits: Sequence[SlotLimits] = (), history: History = NO_HISTORY) -> TrialContext:
    """Write `spec.json` and `trial_context.json`, and return the latter's content; `history` has used a part of the budget."""
    with replacing(execution.folder / SPEC) as file:
        file.write(json.dumps(stored(execution), indent=1).encode())
    context = trial_context(execution, limits, history)
    context.write()
    return context


def stored(execution: Execution) -> dict[str, Any]:
    """Return what `spec.json` holds."""
    return {"execution_id": execution.execution_id, "run_id": execution.spec.run_id, "run": run_spec_to_json(execution.spec)}


def trial_context(execution: Execution, limits: Sequence[SlotLimits] = (), history: History = NO_HISTORY) -> TrialContext:
    """Return what an execution's trials are given."""
    experiment = execution.spec.experiment
    memory_mb, left = experiment.workers.memory_mb, budget_left(experiment.budget, history)
    return TrialContext(
        run_dir=str(execution.folder),
        execution_id=execution.execution_id,
        workload=experiment.workload.target,
        workload_options=dict(experiment.workload.options),
        metric=experiment.objective.metric,
        mode=experiment.objective.mode,
        epochs=experiment.budget.epochs_per_trial,
        trials=left.trials,
        epochs_total=left.epochs_total,
        wall_clock_seconds=left.wall_clock_seconds,
        slots=experiment.workers.count,
        threads=experiment.workers.threads,
        retries=experiment.failures.retries,
        seed=execution.spec.seed,
        memory_bytes=None if memory_mb is None else int(memory_mb * MEGABYTE),
        limits=tuple(limits),
        first_attempts=history.first_attempts(),
    )
