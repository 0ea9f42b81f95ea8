"""A cell by the framework's own defaults: its plain program, without adapter, lifecycle and supervisor; and through the adapter:

`tuneoff compare` on a file of this one run, in a process of its own; a killed one is resumed.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tuneoff.adapter import Support
from tuneoff.base.identity import canonical_json
from tuneoff.base.json_values import plain
from tuneoff.errors import ResultsError
from tuneoff.experiment.environments import interpreter
from tuneoff.experiment.plan import seconds_at_most
from tuneoff.measure.stored import read_runs
from tuneoff.record.store import selected_executions
from tuneoff.registry import adapter_class
from tuneoff.run.child import ChildEnd
from tuneoff.run.supervisor.cgroups import group_sites, limit_settings, make_group
from tuneoff.run.supervisor.execution import MEGABYTE
from tuneoff.run.supervisor.guardian import Announce
from tuneoff.run.supervisor.leftovers import remove_cgroup
from tuneoff_faults.cell import (
    HOLD_SECONDS,
    PROGRAM_MEGABYTES,
    MatrixCell,
    end,
    python,
    run_cell,
    workload_options,
)
from tuneoff_faults.classify import SeenRun
from tuneoff_faults.plain import Claim, PlainTask, State, read_answer

_NAME = "tuneoff-"  # of a group, before its cell's
UNLIMITED = "no control group can be made here, so nothing limits memory and the trial gives up by itself: "
FILE, RESULTS = "cell.yaml", "results"
NOTICES = ("best_differs", "best_value_differs", "unknown_best", "missing_configurations", "foreign_configurations")
RETRIES = 1  # of a trial, none where the adapter repeats no trials
OVER_LIMIT = 2.0  # times the memory limit that a trial allocates
_MORE_SECONDS = 30.0  # for the command itself


def run_by_defaults(cell: MatrixCell, limit: float) -> SeenRun:
    """Run the plain program with the fault, once more after it was killed, and return what was seen.

    Each start of it has `limit` seconds.

    Raises:
        NotStruck: the part that is to be taken away is not there.
    """
    with _memory(cell) as (group, allocate_mb):
        ended, seconds = _run_to_its_end(cell, lambda is_again: _run(cell, group, allocate_mb, limit, is_again=is_again))
    seen = _seen(ended, cell.kept, seconds)
    if cell.fault.kind == "out_of_memory" and group is None and seen.failure:
        return SeenRun(failure=UNLIMITED + seen.failure, seconds=seconds)
    return seen


def _run_to_its_end(cell: MatrixCell, run: Callable[[bool], ChildEnd]) -> tuple[ChildEnd, float]:
    """Run the cell's program, again (True) after it was killed; return how it ended, and the seconds of both."""
    try:
        ended = run(False)
        seconds = ended.seconds
        if cell.fault.strike == "driver" and cell.is_struck and ended.code is not None:
            if cell.setting == "adapter":
                end(cell, wait_seconds=10.0)  # what is left of a killed command ends by itself
            ended = run(True)
            seconds += ended.seconds
        return ended, seconds
    finally:
        end(cell)


def _run(cell: MatrixCell, group: Path | None, allocate_mb: float, limit: float, *, is_again: bool) -> ChildEnd:
    experiment = cell.spec.experiment
    assert cell.tools is not None
    PlainTask(
        folder=str(cell.folder),
        configurations=experiment.configurations,
        workload=experiment.workload.target,
        options=workload_options(cell, allocate_mb, hold_seconds=0.0 if cell.fault.kind == "out_of_memory" else HOLD_SECONDS),
        metric=experiment.objective.metric,
        mode=experiment.objective.mode,
        epochs=experiment.budget.epochs_per_trial,
        workers=experiment.workers.count,
        is_again=is_again,
        parent=os.getpid(),
    ).write()
    command = [interpreter(cell.spec), "-m", cell.tools.plain, str(cell.folder)]
    if group is not None:
        enter = 'echo $$ > "$0" && exec "$@"'  # the process enters the group before it becomes the program
        command = ["/bin/sh", "-c", enter, str(group / "cgroup.procs"), *command]
    return run_cell(cell, command, limit)


def _seen(ended: ChildEnd, folder: Path, seconds: float) -> SeenRun:
    if ended.code is None:
        return SeenRun(ended=False, words=ended.words, seconds=seconds)
    answer = read_answer(folder)
    if ended.code != 0 or answer is None:
        how = f"killed by signal {-ended.code}" if ended.code < 0 else f"exit code {ended.code}"
        return SeenRun(failure=f"{how}: {ended.words}" if ended.words else how, seconds=seconds)
    return SeenRun(claims=answer[0], best=answer[1], seconds=seconds)


@contextlib.contextmanager
def _memory(cell: MatrixCell) -> Iterator[tuple[Path | None, float]]:
    """Give the control group, where one is needed and can be made, and how much the trial allocates."""
    workers = cell.spec.experiment.workers
    memory_mb = workers.memory_mb or 0.0
    if cell.fault.kind != "out_of_memory":
        yield None, memory_mb
        return
    limit_mb = PROGRAM_MEGABYTES + memory_mb * workers.count
    with memory_group(cell.name, int(limit_mb * MEGABYTE), cell.announce) as group:
        yield group, memory_mb if group is None else 2 * limit_mb


@contextlib.contextmanager
def memory_group(cell: str, limit_bytes: int, announce: Announce = lambda folder: None) -> Iterator[Path | None]:
    """Give a cell's group of that limit, announced, and removed at the end, or None: none can be made here."""
    hierarchy = group_sites(["memory"])["memory"]
    folder = None if hierarchy.parent is None else hierarchy.parent / f"{_NAME}{cell}"
    if folder is not None:
        announce(folder)
    try:
        can_be_made = folder is not None and not make_group(
            folder, {"memory": limit_settings(hierarchy.version, "memory", limit_bytes)}
        )
        yield folder if can_be_made else None
    finally:
        if folder is not None:
            remove_cgroup(folder)


def run_by_adapter(cell: MatrixCell, content: Mapping[str, Any]) -> SeenRun:
    """Run the command with the fault, resume it after it was killed, and return what its record says.

    Raises:
        NotStruck: the part that is to be taken away is not there.
    """
    retries = RETRIES if adapter_class(cell.spec.adapter).capabilities.retry is Support.YES else 0
    memory_mb = cell.spec.experiment.workers.memory_mb or 0.0
    options = workload_options(cell, OVER_LIMIT * memory_mb)
    entry = {"name": cell.spec.adapter, "platform": cell.spec.platform, "options": dict(cell.spec.options)}
    entry |= {"environment": plain(cell.spec.environment)} if cell.spec.environment is not None else {}
    cell_content = {  # the experiment, with the fault, one adapter, and nothing measured but time
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
    (cell.folder / FILE).write_text(json.dumps(cell_content))
    command = python("-m", "tuneoff", "compare", FILE, "--output", RESULTS, "--no-report", "--json")
    limit = seconds_at_most(cell.spec) + _MORE_SECONDS
    ended, seconds = _run_to_its_end(
        cell, lambda is_again: run_cell(cell, [*command, "--resume"] if is_again else command, limit)
    )
    if ended.code is None:
        return SeenRun(ended=False, words=f"the command itself: {ended.words}", seconds=seconds)
    try:
        records = list(selected_executions(read_runs(cell.kept / RESULTS)).values())
    except ResultsError:
        records = []
    if len(records) != 1:
        return SeenRun(failure=f"exit code {ended.code}: {ended.words}", seconds=seconds)
    record = records[0]
    if record.status == "timeout":
        return SeenRun(ended=False, words=str(record.reason), seconds=seconds)
    if record.status != "done":
        return SeenRun(failure=f"{record.status}, charged to {record.charged}: {record.reason}", seconds=seconds)
    indices = {canonical_json(dict(item)): index for index, item in enumerate(cell.spec.experiment.configurations)}
    claims = []
    for trial in record.trials:
        state: State = "completed" if trial.state == "completed" else "failed"
        text = f"{trial.state}: {trial.cause}" if trial.cause else trial.state
        index = indices[canonical_json(dict(trial.configuration))]
        claims.append(Claim(index=index, state=state, value=trial.value, text=text))
    by_trial = {trial.trial: claim.index for trial, claim in zip(record.trials, claims, strict=True)}
    best = None
    if record.best is not None and record.best.trial is not None:
        best = (by_trial.get(record.best.trial, -1), record.best.framework_value)
    notices = tuple(flag.name for flag in record.flags if flag.name in NOTICES)
    return SeenRun(claims=tuple(claims), best=best, notices=notices, seconds=seconds)
