"""What runs leave behind is found and removed, by the run's end, the guardian, or the next command."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from multiprocessing import shared_memory as shared_memory_module
from pathlib import Path

import pytest

from tuneoff.lifecycle.context import remember
from tuneoff.supervisor import leftovers
from tuneoff.supervisor.guardian import Guardian
from tuneoff.supervisor.leftovers import (
    RESULTS_MARK,
    clean_execution,
    clean_results,
    remembered,
    shared_memory,
    unmapped,
)
from tuneoff.supervisor.processes import is_alive

WAIT = "import sys; print('up', flush=True); sys.stdin.read()"


def marked_child(results: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", WAIT],
        env={**os.environ, RESULTS_MARK: str(results.resolve())},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdout is not None
    child.stdout.readline()
    return child


def unfinished_execution(results: Path) -> tuple[Path, Path]:
    execution = results / "runs" / "r" / "e"
    execution.mkdir(parents=True)
    temporary = results.parent / "temporary"
    remember(execution, "folder", str(temporary))
    temporary.mkdir()
    (temporary / "socket").touch()
    return execution, temporary


def test_a_torn_line_of_the_list_is_passed_over(tmp_path: Path) -> None:
    execution, temporary = unfinished_execution(tmp_path / "results")
    with (execution / "leftovers.jsonl").open("a") as file:
        file.write('{"kind": "fol')
    assert remembered(execution) == [("folder", str(temporary))]
    assert clean_execution(execution) == []
    assert not temporary.exists()


def test_the_next_command_ends_marked_processes_and_cleans_unfinished_executions(tmp_path: Path) -> None:
    results = tmp_path / "results"
    _, temporary = unfinished_execution(results)
    child, other = marked_child(results), marked_child(tmp_path / "other")
    try:
        assert clean_results(results) == [child.pid]
        assert not temporary.exists()
        assert is_alive(other.pid)
    finally:
        for process in (child, other):
            process.kill()
            process.communicate()


def test_a_finished_execution_is_left_alone(tmp_path: Path) -> None:
    execution, temporary = unfinished_execution(tmp_path / "results")
    (execution / "run.json").touch()
    clean_results(tmp_path / "results")
    assert temporary.exists()


def test_the_guardian_cleans_when_its_pipe_ends_without_a_goodbye(tmp_path: Path) -> None:
    results = tmp_path / "results"
    _, temporary = unfinished_execution(results)
    child = marked_child(results)
    guardian = Guardian(results)
    assert guardian._process.stdin is not None
    guardian._process.stdin.close()  # what the kernel does when tuneoff is killed
    guardian._process.wait(20)
    assert child.wait(5) == -9
    assert not temporary.exists()
    child.communicate()


def test_a_dismissed_guardian_touches_nothing(tmp_path: Path) -> None:
    results = tmp_path / "results"
    _, temporary = unfinished_execution(results)
    child = marked_child(results)
    started = time.monotonic()
    Guardian(results).dismiss()
    assert time.monotonic() - started < 20
    assert is_alive(child.pid)
    assert temporary.exists()
    child.kill()
    child.communicate()


def test_shared_memory_that_a_living_process_uses_is_no_leftover() -> None:
    used, forgotten = (shared_memory_module.SharedMemory(create=True, size=4096) for _ in range(2))
    names = {used.name.lstrip("/"), forgotten.name.lstrip("/")}
    try:
        assert names <= shared_memory()
        forgotten.close()
        assert unmapped(names) == {forgotten.name.lstrip("/")}
    finally:
        used.close()
        used.unlink()
        forgotten.unlink()


@pytest.mark.parametrize(
    "line", ["5", "[]", "{}", '{"kind": 5, "value": 5}', '{"kind": "folder", "value": ""}', '{"kind": "folder"}', "\x00"]
)
def test_a_damaged_line_of_the_list_is_passed_over(tmp_path: Path, line: str) -> None:
    execution, temporary = unfinished_execution(tmp_path / "results")
    with (execution / "leftovers.jsonl").open("a") as file:
        file.write(f"{line}\n")
    assert remembered(execution) == [("folder", str(temporary))]


def test_the_list_of_a_folder_from_elsewhere_removes_nothing_but_temporary_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "TEMPORARY", ())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    execution = tmp_path / "results" / "runs" / "r" / "e"
    execution.mkdir(parents=True)
    mine, empty = tmp_path / "mine", tmp_path / "empty"
    theirs = tmp_path / "tmp" / "theirs"
    own = tmp_path / "elsewhere" / "tuneoff-0123abcd"
    for folder in (mine, empty, theirs, own):
        folder.mkdir(parents=True)
    (tmp_path / "tmp" / "link").symlink_to(mine)
    for kind, path in (
        ("folder", mine),
        ("folder", tmp_path / "tmp" / ".." / "mine"),
        ("folder", tmp_path / "tmp" / "link"),
        ("folder", tmp_path / "tmp"),
        ("cgroup", empty),
        ("folder", theirs),
        ("folder", own),
    ):
        remember(execution, kind, str(path))
    clean_results(tmp_path / "results")
    assert [path.exists() for path in (mine, empty, tmp_path / "tmp", theirs, own)] == [True, True, True, False, False]


@pytest.mark.parametrize("named", ["results", "results/runs/r/other", "."])
def test_results_in_a_temporary_folder_are_not_removed_by_a_list(tmp_path: Path, named: str) -> None:
    results = tmp_path / "results"
    execution, other = (results / "runs" / "r" / name for name in ("cut", "other"))
    for folder in (execution, other):
        folder.mkdir(parents=True)
    remember(execution, "folder", str((tmp_path / named).resolve()))
    clean_results(results)
    assert other.exists()
