"""Start, resume and finish a matrix in a process of its own, and check that no finished run was repeated or lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

from command_line import write_file
from tuneoff.base.processes import MARK
from tuneoff.measure.stored import read_runs
from tuneoff.record.end import broken_seals, read_end
from tuneoff.record.run_record import RunRecord
from tuneoff.run.run_ends import run_ends
from tuneoff.run.supervisor.leftovers import RESULTS_MARK


def write_matrix(folder: Path, **changes: Any) -> tuple[Path, Path]:
    """Write the file of short runs, with keys replaced, and return it with the folder for its results."""
    content = {
        "workload": {"name": "sleep", "options": {"epoch_seconds": 0.2}},
        "search_space": {"x": {"type": "float", "low": 0.0, "high": 1.0}},
        "sampler": "random",
        "budget": {"trials": 4, "epochs_per_trial": 3},
        "workers": {"count": 2},
        "adapters": ["serial"],
        "warm_up": False,
    }
    return write_file(folder / "matrix.yaml", {**content, **changes}), folder / "results"


class Broken(Exception):
    """Something that must hold did not."""


def has_trained(results: Path, besides: Collection[Path] = ()) -> bool:
    """Tell whether an epoch was trained, in executions besides those with these folders of events."""
    folders = set(results.glob("runs/*/*/events")) - set(besides)
    return any(b'"type":"epoch"' in path.read_bytes() for folder in folders for path in folder.glob("*.jsonl"))


def finish(file: Path, results: Path) -> None:
    """Resume to the end.

    Raises:
        Broken: it failed, a run is not done, or a finished run was repeated.
    """
    before = finished(results)
    if code := start(file, results).wait():
        raise Broken(f"the matrix ended with exit code {code}: {errors_of(results).read_text()[-300:]}")
    after = finished(results)
    repeated = [run_id for run_id, execution in before.items() if after.get(run_id) != execution]
    unfinished = [end.run_id for end in run_ends(results) if end.status != "done"]
    if repeated or unfinished:
        raise Broken(f"repeated: {repeated}; not done: {unfinished}")
    check_finished_runs(results)


def errors_of(results: Path) -> Path:
    """Return where the last command on a folder wrote its errors."""
    return results.with_suffix(".err")


def start(file: Path, results: Path) -> subprocess.Popen[bytes]:
    """Start the matrix, or resume it where it was begun."""
    resume = ["--resume"] if (results / "matrix.json").exists() else []
    options = ["--no-report", "--json", "--output", str(results), *resume]  # an answer in words takes a second more
    command = [sys.executable, "-m", "tuneoff", "compare", str(file), *options]
    # first: Ray's agents write their title over the beginning of their environment, and lose these marks then
    environment = {RESULTS_MARK: "none", MARK: "none", **os.environ}
    with errors_of(results).open("wb") as errors:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=environment)


def finished(results: Path) -> dict[str, str]:
    """Return the execution that is done, by run; warm-ups left out.

    Raises:
        Broken: a run was done twice.
    """
    found: dict[str, str] = {}
    for record in read_runs(results) if results.is_dir() else ():
        if record.status != "done" or record.run_spec().warm_up:
            continue
        if record.run_id in found:
            raise Broken(f"run {record.run_id} was done twice: {found[record.run_id]} and {record.execution_id}")
        found[record.run_id] = record.execution_id
    return found


def check_finished_runs(results: Path) -> None:
    """Check that each recorded run has all its trials and its event files as they were sealed.

    Raises:
        Broken: they are not.
    """
    for record in read_runs(results) if results.is_dir() else ():
        folder = results / "runs" / record.run_id / record.execution_id
        problems = [str(seal) for seal in broken_seals(folder, read_end(folder).sealed)]
        problems += _missing_trials(record)
        if problems:
            raise Broken(f"run {record.run_id}, {record.execution_id}: {'; '.join(problems)}")


def _missing_trials(record: RunRecord) -> list[str]:
    experiment = record.run_spec().experiment
    trials = experiment.budget.trials
    if record.status == "done" and not experiment.objective.stop and len(record.trials) != trials:
        return [f"{len(record.trials)} of {trials} trials"]
    return []
