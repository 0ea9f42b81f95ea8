"""An execution that was removed whole is missed by the list of those that were begun, whatever its command came to."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from builders.event_logs import example_b
from builders.results_folders import EXECUTION, Results, lines
from tuneoff.base.layout import BEGUN
from tuneoff.errors import ResultsError
from tuneoff.record.endings import Ruling
from tuneoff.record.events import schema
from tuneoff.record.results_folder import begun, note_begun
from tuneoff.trust.verify.results import verify


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    """The folder of a matrix of two runs that was interrupted in its second one."""
    (log, spec), ruling = example_b(), Ruling(status="interrupted", reason="interrupted by the user", charged="user")
    log.process("supervisor", -2).add(schema.RunStopped, 45.0, cause=ruling.reason or "", charged="user", cancels=False)
    results = Results(tmp_path / "results", [spec, replace(spec, seed=1)])
    results.add_log(spec, log, ruling)
    note_begun(results.path, spec.run_id, EXECUTION)
    return results.path


def test_a_folder_in_which_all_that_was_begun_is_there_is_verified(interrupted: Path) -> None:
    assert lines(interrupted) == []
    assert [run.name for run in verify(interrupted).not_begun] == ["serial random seed 1"]


def test_an_execution_that_was_removed_whole_is_named_though_its_matrix_was_interrupted(interrupted: Path) -> None:
    run_id = verify(interrupted).not_begun[0].run_id
    note_begun(interrupted, run_id, f"{run_id}-abcdef")
    (line,) = lines(interrupted)
    assert line == f"runs/{run_id}/{run_id}-abcdef: was begun in this folder, but is not there: it was removed"


def test_the_only_execution_removed_is_named_once(interrupted: Path) -> None:
    ((run_id, execution_id),) = begun(interrupted)
    shutil.rmtree(interrupted / "runs" / run_id)
    (line,) = lines(interrupted)
    assert line.startswith(f"runs/{run_id}/{execution_id}: was begun")
    (interrupted / ".lock").touch()  # the command came to its end: the run itself is named as missing
    named = lines(interrupted)
    assert [name for name in named if run_id in name] == [name for name in named if name.startswith(f"runs/{run_id}: planned")]


def test_a_line_cut_by_a_kill_is_no_execution(interrupted: Path) -> None:
    before = begun(interrupted)
    with (interrupted / BEGUN).open("ab") as file:
        file.write(b"0123456789abcdef/0123")
    assert begun(interrupted) == before
    assert lines(interrupted) == []


def test_a_folder_without_a_list_is_verified_as_before(interrupted: Path) -> None:
    (interrupted / BEGUN).unlink()
    assert lines(interrupted) == []
    (interrupted / BEGUN).mkdir()  # control: one that cannot be read is named
    assert any(line.startswith(f"{BEGUN}: cannot be read") for line in lines(interrupted))
    with pytest.raises(ResultsError, match=r"\.executions cannot be written: Is a directory; free space or"):
        note_begun(interrupted, "a", "a-b")
