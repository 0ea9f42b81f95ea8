"""A cell through the adapter: `tuneoff compare` on a file of this one run, in a process of its own; a killed one is resumed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuneoff.base.identity import canonical_json
from tuneoff.capabilities import Support
from tuneoff.errors import ResultsError
from tuneoff.experiment.plan import seconds_at_most
from tuneoff.record.run_record import RunRecord, TrialRecord
from tuneoff.record.store import read_runs, standing
from tuneoff.registry import adapter_class
from tuneoff.run.child import ChildEnd
from tuneoff.trust.faultmatrix.cell import CellPlace, FaultCell, end, folder_after, python, run_cell, workload_options
from tuneoff.trust.faultmatrix.classify import Claim, SeenRun, State

FILE, RESULTS = "cell.yaml", "results"
NOTICES = ("best_differs", "best_value_differs", "unknown_best", "missing_configurations", "foreign_configurations")
RETRIES = 1  # of a trial, none where the adapter repeats no trials
OVER_LIMIT = 2.0  # times the memory limit that a trial allocates
_MORE_SECONDS = 30.0  # for the command itself


def run_by_adapter(cell: FaultCell, place: CellPlace, content: Mapping[str, Any]) -> SeenRun:
    """Run the command with the fault, resume it after it was killed, and return what its record says.

    Raises:
        NotStruck: the part that is to be taken away is not there.
    """
    _write_file(cell, place, content)
    command = python("-m", "tuneoff", "compare", FILE, "--output", RESULTS, "--no-report", "--json")
    limit = seconds_at_most(cell.spec) + _MORE_SECONDS
    try:
        ended = run_cell(cell, place, command, limit)
        seconds = ended.seconds
        if cell.fault.strike == "driver" and place.is_struck and ended.code is not None:
            end(cell, wait_seconds=10.0)  # what is left of a killed command ends by itself
            ended = run_cell(cell, place, [*command, "--resume"], limit)
            seconds += ended.seconds
    finally:
        end(cell)
    return _seen(cell, ended, folder_after(cell, place) / RESULTS, seconds)


def _write_file(cell: FaultCell, place: CellPlace, content: Mapping[str, Any]) -> None:
    """Write the file of this one run: the experiment, with the fault, one adapter, and nothing measured but time."""
    retries = RETRIES if adapter_class(cell.spec.adapter).capabilities.retry is Support.YES else 0
    memory_mb = cell.spec.experiment.workers.memory_mb or 0.0
    options = workload_options(cell, place, OVER_LIMIT * memory_mb)
    entry = {"name": cell.spec.adapter, "platform": cell.spec.platform, "options": dict(cell.spec.options)}
    cell_content = {
        **content,
        "workload": {"name": cell.spec.experiment.workload.name, "options": options},
        "adapters": [entry],
        "failures": {"retries": retries},
        "seeds": [cell.spec.seed],
        "warm_up": False,
        "power": "none",
        "carbon": "none",
        "prices": "none",
    }
    (place.folder / FILE).write_text(json.dumps(cell_content))


def _seen(cell: FaultCell, ended: ChildEnd, results: Path, seconds: float) -> SeenRun:
    if ended.code is None:
        return SeenRun(ended=False, words=f"the command itself: {ended.words}", seconds=seconds)
    try:
        records = list(standing(read_runs(results)).values())
    except ResultsError:
        records = []
    if len(records) != 1:
        return SeenRun(failure=f"exit code {ended.code}: {ended.words}", seconds=seconds)
    return seen_of_record(cell, records[0], seconds)


def seen_of_record(cell: FaultCell, record: RunRecord, seconds: float) -> SeenRun:
    """Return what a record says, by the index of the configurations."""
    if record.status == "timeout":
        return SeenRun(ended=False, words=str(record.reason), seconds=seconds)
    if record.status != "done":
        return SeenRun(failure=f"{record.status}, charged to {record.charged}: {record.reason}", seconds=seconds)
    indices = {canonical_json(dict(item)): index for index, item in enumerate(cell.spec.experiment.configurations)}
    claims = tuple(_claim(trial, indices[canonical_json(dict(trial.configuration))]) for trial in record.trials)
    by_trial = {trial.trial: claim.index for trial, claim in zip(record.trials, claims, strict=True)}
    best = None
    if record.best is not None and record.best.trial is not None:
        best = (by_trial.get(record.best.trial, -1), record.best.framework_value)
    notices = tuple(flag.name for flag in record.flags if flag.name in NOTICES)
    return SeenRun(claims=claims, best=best, notices=notices, seconds=seconds)


def _claim(trial: TrialRecord, index: int) -> Claim:
    state: State = "completed" if trial.state == "completed" else "failed"
    text = f"{trial.state}: {trial.cause}" if trial.cause else trial.state
    return Claim(index=index, state=state, value=trial.value, text=text)
