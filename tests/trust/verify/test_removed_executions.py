"""What was removed is missed: runs by the plan, whole executions by the list of those that were begun, records by the lock."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from builders.event_logs import example_b
from builders.results_folders import EXECUTION, Results, execution, lines
from tuneoff.base.layout import BEGUN
from tuneoff.errors import ResultsError
from tuneoff.record.endings import Ruling
from tuneoff.record.events import schema
from tuneoff.record.results_folder import begun, note_begun
from tuneoff.trust.verify.results import verify

LATER, NOT_CUT = "later runs of the plan have one", "nothing was interrupted"


@pytest.mark.parametrize(
    ("adapter", "is_emptied", "why"), [("serial", False, LATER), ("serial", True, LATER), ("optuna", False, NOT_CUT)]
)
def test_a_removed_run_is_named_by_what_was_planned(results: Path, adapter: str, is_emptied: bool, why: str) -> None:
    folder = execution(results, adapter)
    shutil.rmtree(folder if is_emptied else folder.parent)
    if is_emptied:
        folder.mkdir()
    (line,) = lines(results)
    run = f"runs/{folder.parent.name}: planned ({adapter} random seed 0)"
    assert line == f"{run}, but it has no execution, and {why}: it was removed"


@pytest.mark.parametrize(("lock", "is_named"), [("", True), (None, True), ("4711\n", False)])
def test_the_last_run_is_missed_unless_the_command_was_cut(results: Path, lock: str | None, is_named: bool) -> None:
    """A command that came to its end leaves an empty lock; one that was killed or interrupted between two runs its pid."""
    shutil.rmtree(execution(results, "optuna").parent)
    if lock is not None:
        (results / ".lock").write_text(lock)
    verification = verify(results)
    assert verification.is_verified is not is_named
    assert [run.name for run in verification.not_begun] == ([] if is_named else ["optuna random seed 0"])


def test_all_runs_removed_is_named_where_the_command_came_to_its_end(results: Path) -> None:
    shutil.rmtree(results / "runs")
    assert verify(results).is_verified  # nothing tells that a run was begun
    (results / ".lock").write_text("")
    assert len(lines(results)) == 2


def test_one_record_is_lacking_after_a_kill_and_no_more(results: Path) -> None:
    """A killed command leaves one execution without an end; the next command states it."""
    (execution(results, "optuna") / "end.json").unlink()
    assert len(lines(results)) == 1
    (results / ".lock").write_text("4711\n")
    verification = verify(results)
    assert verification.is_verified
    assert "`--resume` ends it" in next(outcome.notes[0] for outcome in verification.outcomes if outcome.status is None)
    (execution(results, "serial") / "end.json").unlink()
    assert len(lines(results)) == 2


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    """The folder of a matrix of two runs that was interrupted in its second one."""
    (log, spec), ruling = example_b(), Ruling(status="interrupted", reason="interrupted by the user", charged="user")
    log.process("supervisor", -2).add(schema.RunStopped, 45.0, cause=ruling.reason or "", charged="user", cancels=False)
    results = Results(tmp_path / "results", [spec, replace(spec, seed=1)])
    results.add_log(spec, log, ruling)
    note_begun(results.path, spec.run_id, EXECUTION)
    return results.path


def test_an_execution_that_was_removed_whole_is_named_though_its_matrix_was_interrupted(interrupted: Path) -> None:
    assert lines(interrupted) == []
    (run,) = verify(interrupted).not_begun
    assert run.name == "serial random seed 1"
    note_begun(interrupted, run.run_id, f"{run.run_id}-abcdef")
    (line,) = lines(interrupted)
    assert line == f"runs/{run.run_id}/{run.run_id}-abcdef: was begun in this folder, but is not there: it was removed"


def test_the_only_execution_removed_is_named_once(interrupted: Path) -> None:
    ((run_id, execution_id),) = begun(interrupted)
    shutil.rmtree(interrupted / "runs" / run_id)
    (line,) = lines(interrupted)
    assert line.startswith(f"runs/{run_id}/{execution_id}: was begun")
    (interrupted / ".lock").touch()  # the command came to its end: the run itself is named as missing
    named = lines(interrupted)
    assert [name for name in named if run_id in name] == [name for name in named if name.startswith(f"runs/{run_id}: planned")]


def test_a_list_that_was_cut_removed_or_replaced(interrupted: Path) -> None:
    before = begun(interrupted)
    with (interrupted / BEGUN).open("ab") as file:
        file.write(b"0123456789abcdef/0123")  # a line cut by a kill is no execution
    assert (begun(interrupted), lines(interrupted)) == (before, [])
    (interrupted / BEGUN).unlink()
    assert lines(interrupted) == []
    (interrupted / BEGUN).mkdir()
    assert any(line.startswith(f"{BEGUN}: cannot be read") for line in lines(interrupted))
    with pytest.raises(ResultsError, match=r"\.executions cannot be written: Is a directory; free space or"):
        note_begun(interrupted, "a", "a-b")
