"""A disk that is full when a run's record is to be written: the next command says so, and verify takes it for what it is."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from builders.killed_logs import SPEC
from builders.results_folders import Results
from builders.specs import make_spec
from tuneoff.adapter import Best, score_best
from tuneoff.base.layout import RUNS
from tuneoff.errors import ResultsError
from tuneoff.experiment.accounting.declared import NO_ACCOUNTING, write_accounting
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.plan import make_plan
from tuneoff.measure.stored import read_runs
from tuneoff.record.endings import KILLED, UNWRITABLE, Ruling
from tuneoff.record.events.writer import EventWriter
from tuneoff.record.run_context import RunContext
from tuneoff.run import execute as execution
from tuneoff.run.finish import recover
from tuneoff.run.supervisor.execution import Execution, new_execution, trial_context, write_inputs
from tuneoff.trust.verify.results import verify

FILE = """
workload: "null"
sampler: random
budget: {trials: 3, epochs_per_trial: 2}
adapters: [serial]
warm_up: false
"""


def from_store(number: int) -> Exception:
    error = ResultsError("run.json cannot be written")
    error.__cause__ = OSError(number, os.strerror(number))
    return error


@contextmanager
def no_space() -> Iterator[None]:
    """Let no file grow, so that a write fails after its file was made, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _score(made: Execution) -> None:
    context = RunContext(
        spec=made.spec,
        run_dir=made.folder,
        execution_id=made.execution_id,
        trial_context=trial_context(made),
        events=EventWriter(made.folder, made.execution_id, "coordinator"),
    )
    with no_space():
        score_best(context, Best(trial_id="t00000", configuration={"x": 0.5}, value=None))


def _prepare(made: Execution) -> None:
    with no_space():
        write_inputs(made)


def _write_context(made: Execution) -> None:
    with no_space():
        trial_context(made).write()


@pytest.mark.parametrize("write", [_prepare, _write_context, _score])
def test_a_full_disk_leaves_no_half_of_what_a_run_is_given(tmp_path: Path, write: Callable[[Execution], None]) -> None:
    made = new_execution(make_spec(), tmp_path)
    with pytest.raises(OSError, match="File too large"):
        write(made)
    assert list(made.folder.glob("*.json")) == []
    write_inputs(made)  # control
    assert [path.name for path in sorted(made.folder.glob("*.json"))] == ["spec.json", "trial_context.json"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "reason", "is_wrapped"),
    [
        (errno.ENOSPC, "the disk was full", False),
        (errno.EDQUOT, "the quota was used up", True),
    ],
)
def test_a_run_whose_record_met_a_full_disk_was_not_killed_by_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, reason: str, is_wrapped: bool
) -> None:
    file, results = tmp_path / "one.yaml", tmp_path / "results"
    file.write_text(FILE)
    plan = make_plan(load_matrix(file))

    def full(*arguments: object) -> NoReturn:
        raise from_store(number) if is_wrapped else OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(execution, "finish", full)
        with pytest.raises(ResultsError, match="cannot be written"):
            execution.execute(execution.PlanRequest(plan=plan, results=results))
    execution.execute(execution.PlanRequest(plan=plan, results=results, resume=True))
    cut, done = sorted(read_runs(results), key=lambda record: record.status != "interrupted")
    assert (cut.status, cut.charged) == ("interrupted", "infrastructure")
    assert cut.reason == f"its results folder could not be written: {reason}"
    assert done.status == "done"
    assert verify(results).is_verified


@pytest.mark.parametrize("ruling", [KILLED, UNWRITABLE[errno.ENOSPC]])
@pytest.mark.parametrize("files", [(), ("accounting.json",), ("accounting.json", "leftovers.jsonl")])
def test_an_execution_that_was_cut_before_its_specification_was_written_has_the_cause_of_its_end(
    tmp_path: Path, ruling: Ruling, files: tuple[str, ...]
) -> None:
    results = Results(tmp_path / "results", [SPEC])
    made = new_execution(SPEC, results.path / RUNS)
    write_accounting(made.folder, NO_ACCOUNTING)
    for path in made.folder.iterdir():
        if path.is_file() and path.name not in files:
            path.unlink()
    for name in files:
        (made.folder / name).touch()
    recover(results.path, results.plan, ruling)
    (record,) = read_runs(results.path)
    assert (record.status, record.reason, record.charged, record.trials) == (ruling.status, ruling.reason, ruling.charged, ())
    assert verify(results.path).is_verified
