"""Make an execution's folder: all that the coordinator and the trials read."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tuneoff.events.writer import FOLDER as EVENTS
from tuneoff.experiment.spec import RunSpec, run_spec_to_json
from tuneoff.lifecycle.context import SPEC
from tuneoff.resume.budget import budget_left
from tuneoff.resume.history import History
from tuneoff.trial.context import TrialContext
from tuneoff.trial.limits import SlotLimits

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
    (folder / EVENTS).mkdir(parents=True)
    return Execution(spec=spec, execution_id=execution_id, folder=folder)


def write_inputs(execution: Execution, limits: Sequence[SlotLimits] = (), history: History = NO_HISTORY) -> TrialContext:
    """Write `spec.json` and `trial_context.json`, and return the latter's content; `history` has used a part of the budget."""
    experiment, folder = execution.spec.experiment, execution.folder
    stored = {"execution_id": execution.execution_id, "run_id": execution.spec.run_id, "run": run_spec_to_json(execution.spec)}
    (folder / SPEC).write_text(json.dumps(stored, indent=1))
    memory_mb, left = experiment.workers.memory_mb, budget_left(experiment.budget, history)
    context = TrialContext(
        run_dir=str(folder),
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
        seed=execution.spec.seed,
        memory_bytes=None if memory_mb is None else int(memory_mb * MEGABYTE),
        limits=tuple(limits),
        first_attempts=history.first_attempts(),
    )
    context.write()
    return context
