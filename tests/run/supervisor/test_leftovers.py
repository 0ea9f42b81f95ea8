"""What runs leave behind is found and removed, by the run's end, the guardian, or the next command."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from multiprocessing import shared_memory as shared_memory_module
from pathlib import Path

import pytest

from builders.waiting_processes import WAIT, waiting
from tuneoff.base.processes import is_alive
from tuneoff.record.run_context import remember
from tuneoff.run.supervisor import leftovers
from tuneoff.run.supervisor.guardian import Guardian
from tuneoff.run.supervisor.leftovers import (
    RESULTS_MARK,
    RunMemory,
    clean_execution,
    clean_results,
    remembered,
    shared_memory,
    unmapped,
)

HOLD = "import os, sys; file = os.open(sys.argv[1], int(sys.argv[2])); print('up', flush=True); sys.stdin.read()"
Waiting = AbstractContextManager[subprocess.Popen[str]]


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # the guardian's
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def marked_child(results: Path) -> Waiting:
    return waiting(env={**os.environ, RESULTS_MARK: str(results.resolve())}, start_new_session=True)


def holder(path: Path, flags: int, mark: str | None = None) -> Waiting:
    """Return a process that has a file open, without an environment but that mark."""
    return waiting(HOLD, str(path), str(flags), env={} if mark is None else {RESULTS_MARK: mark}, start_new_session=True)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return a results folder with an execution that was killed."""
    execution = tmp_path / "results/runs/r/e"
    execution.mkdir(parents=True)
    temporary = tmp_path / "tuneoff-0123abcd"
    remember(execution, "folder", str(temporary))
    temporary.mkdir()
    (temporary / "socket").touch()
    return tmp_path / "results"


@pytest.fixture
def temporary(results: Path) -> Path:
    """Return the execution's temporary folder."""
    return results.with_name("tuneoff-0123abcd")


def test_the_next_command_ends_marked_processes_and_cleans_unfinished_executions(
    tmp_path: Path, results: Path, temporary: Path
) -> None:
    with marked_child(results) as child, marked_child(tmp_path / "other") as other:
        assert clean_results(results) == [child.pid]
        assert not temporary.exists()
        assert is_alive(other.pid)


def test_what_lost_its_mark_and_writes_below_a_killed_run_s_temporary_folder_is_ended_and_a_reader_is_not(
    results: Path, temporary: Path
) -> None:
    log = temporary / "agent.log"
    log.touch()
    with holder(log, os.O_WRONLY) as agent, holder(log, os.O_RDONLY) as reader:
        assert clean_results(results) == [agent.pid]
        assert is_alive(reader.pid)
        assert not temporary.exists()


def test_a_copy_of_a_results_folder_ends_and_removes_nothing_of_the_run_that_is_at_work(
    tmp_path: Path, results: Path, temporary: Path
) -> None:
    log, mark = temporary / "log", str(results.resolve())
    log.touch()
    shutil.copytree(results, tmp_path / "copy")
    with holder(log, os.O_WRONLY) as agent, holder(log, os.O_WRONLY, mark) as worker:
        assert clean_results(tmp_path / "copy") == []
        assert temporary.exists()
        assert sorted(clean_results(results)) == sorted([agent.pid, worker.pid])


def test_a_copy_removes_nothing_of_a_run_at_work_that_has_no_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results: Path, temporary: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(temporary))  # the child's; a run's processes have it so
    shutil.copytree(results, tmp_path / "copy")
    with marked_child(results) as child:
        assert clean_results(tmp_path / "copy") == []
        assert temporary.exists()
        assert clean_results(results) == [child.pid]
        assert not temporary.exists()


def test_a_finished_execution_is_left_alone(results: Path, temporary: Path) -> None:
    (results / "runs/r/e/end.json").touch()
    clean_results(results)
    assert temporary.exists()


def test_the_guardian_cleans_when_its_pipe_ends_without_a_goodbye(results: Path, temporary: Path) -> None:
    with marked_child(results) as child:
        guardian = Guardian(results)
        assert guardian._process.stdin is not None
        guardian._process.stdin.close()  # what the kernel does when tuneoff is killed
        guardian._process.wait(20)
        assert child.wait(5) == -9
        assert not temporary.exists()


def test_a_dismissed_guardian_touches_nothing(results: Path, temporary: Path) -> None:
    with marked_child(results) as child:
        started = time.monotonic()
        Guardian(results).dismiss()
        assert time.monotonic() - started < 20
        assert is_alive(child.pid)
        assert temporary.exists()


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


@contextlib.contextmanager
def made(name: str) -> Iterator[Path]:
    path = Path("/dev/shm") / name
    path.touch()
    try:
        yield path
    finally:
        path.unlink()


def test_shared_memory_is_the_run_s_if_its_processes_use_it_or_it_has_their_name() -> None:
    unique = os.urandom(4).hex()
    memory = RunMemory(f"run-{unique}")
    names = {what: f"x{unique}{what}" for what in ("foreign", "mapped", "open", "closed")}
    with contextlib.ExitStack() as there:
        for name in names.values():
            there.enter_context(made(name))
        there.enter_context(made(f"framework_run-{unique}_0"))
        uses = f"a = open('/dev/shm/{names['open']}'); open('/dev/shm/{names['closed']}').close()"
        maps = f"import mmap; b = open('/dev/shm/{names['mapped']}', 'r+'); b.truncate(9); m = mmap.mmap(b.fileno(), 9)"
        with waiting(f"{uses}; {maps}; b.close(); {WAIT}") as child:
            memory.look(lambda: [child.pid])
            there.enter_context(made(f"torch_{child.pid}_{unique}"))
            there.enter_context(made(f"psm_a{child.pid}{unique}"))  # a random word may have the digits of a pid
            assert names["mapped"] not in memory.left(), "it is in use"
        own = [names["mapped"], names["open"], f"framework_run-{unique}_0", f"torch_{child.pid}_{unique}"]
        assert memory.left() == sorted(own)
        assert set(names.values()) <= shared_memory(), "control: the foreign one is there, too"
    assert memory.left() == []


def test_a_semaphore_that_only_its_maker_has_mapped_by_the_name_that_it_had_first_is_the_run_s() -> None:
    name = f"mp-{os.urandom(4).hex()}"
    memory = RunMemory("run")
    with waiting(f"import _multiprocessing; kept = _multiprocessing.SemLock(1, 1, 1, '/{name}', False); {WAIT}") as child:
        memory.look(lambda: [child.pid])
        assert memory.left() == [], "it is in use"
    try:
        assert memory.left() == [f"sem.{name}"]
    finally:
        Path(f"/dev/shm/sem.{name}").unlink()


def test_foreign_shared_memory_is_not_looked_at_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, looks = RunMemory("run"), []

    def pids() -> list[int]:
        looks.append(1)
        return []

    monkeypatch.setattr(leftovers, "shared_memory", lambda: {"foreign"})
    for _ in range(20):
        memory.look(pids)
    assert len(looks) == 10


TORN = '{"kind": "fol'
DAMAGED = ["5", "[]", "{}", '{"kind": 5, "value": 5}', '{"kind": "folder", "value": ""}', '{"kind": "folder"}', "\x00"]


@pytest.mark.parametrize("text", [TORN, *(f"{line}\n" for line in DAMAGED)])
def test_a_torn_or_damaged_line_of_the_list_is_passed_over(text: str, results: Path, temporary: Path) -> None:
    execution = results / "runs/r/e"
    with (execution / "leftovers.jsonl").open("a") as file:
        file.write(text)
    assert remembered(execution) == [("folder", str(temporary))]
    assert clean_execution(execution) == []
    assert not temporary.exists()


def test_the_list_of_a_folder_from_elsewhere_removes_nothing_but_runs_own_temporary_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "TEMPORARY", ())
    temporary = tmp_path / "tmp"
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    execution = tmp_path / "results" / "runs" / "r" / "e"
    execution.mkdir(parents=True)
    own = [temporary / "tuneoff-0123abcd", temporary / "tuneoff-fedcba98"]
    others = [
        tmp_path / "mine",
        temporary,
        temporary / "theirs",
        temporary / "tuneoff-0123abc",
        temporary / "tuneoff-0123ABCD",
        temporary / "theirs" / "tuneoff-0123abcd",
        tmp_path / "elsewhere" / "tuneoff-0123abcd",
        temporary / "tuneoff-00000000",  # a file
        temporary / "tuneoff-11111111",  # a link
        temporary / "tuneoff-22222222",  # somebody else's
    ]
    for folder in (*own, *others[:7], others[9]):
        folder.mkdir(parents=True, exist_ok=True)
    others[7].touch()
    others[8].symlink_to(tmp_path / "mine")
    if os.getuid() == 0:
        os.chown(others[9], 12345, -1)
    else:
        others.pop().rmdir()
    for path in (*own, *others, temporary / ".." / "mine"):
        remember(execution, "folder", str(path))
        remember(execution, "cgroup", str(path))
    clean_results(tmp_path / "results")
    assert [path.exists() for path in own] == [False, False]
    assert [path for path in others if not os.path.lexists(path)] == []


def test_a_list_removes_no_control_group_but_its_own_executions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "CGROUPS", str(tmp_path / "cgroup"))
    execution = tmp_path / "results" / "runs" / "r" / "r-0123ab"
    execution.mkdir(parents=True)
    names = ("tuneoff-r-0123ab-0", "tuneoff-r-9999ab-0", "user.slice", "tuneoff-r-0123ab-x")
    groups = [tmp_path / "cgroup" / "memory" / name for name in names]
    for group in groups:
        group.mkdir(parents=True)
        remember(execution, "cgroup", str(group))
    clean_results(tmp_path / "results")
    assert [group.exists() for group in groups] == [False, True, True, True]


@pytest.mark.parametrize("named", ["results", "results/runs/r/other", "."])
def test_results_in_a_temporary_folder_are_not_removed_by_a_list(tmp_path: Path, named: str) -> None:
    results = tmp_path / "results"
    execution, other = (results / "runs" / "r" / name for name in ("cut", "other"))
    for folder in (execution, other):
        folder.mkdir(parents=True)
    remember(execution, "folder", str((tmp_path / named).resolve()))
    clean_results(results)
    assert other.exists()
