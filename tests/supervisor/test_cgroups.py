"""Where memory control groups can be made, on folders that look like the kernel's; a real group where this machine has them."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from event_logs import make_spec
from tuneoff.experiment.spec import Workers
from tuneoff.supervisor import cgroups
from tuneoff.supervisor.cgroups import ROOT, can_limit_memory, joining_problem, make_memory_cgroups
from tuneoff.supervisor.leftovers import clean_execution, remembered
from tuneoff.supervisor.prepare import Execution

LIMIT = {"cgroup v1": "memory.limit_in_bytes", "cgroup v2": "memory.max"}


def execution(tmp_path: Path, memory_mb: float | None = 600) -> Execution:
    folder = tmp_path / "execution"
    folder.mkdir()
    spec = make_spec(workers=Workers(count=2, memory_mb=memory_mb))
    return Execution(spec=spec, execution_id=f"e-{os.urandom(4).hex()}", folder=folder)


@pytest.fixture
def membership(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What /proc/self/cgroup says: this process's own groups."""
    path = tmp_path / "membership"
    path.write_text("4:memory:/own\n1:cpu:/\n0::/own\n")
    monkeypatch.setattr(cgroups, "MEMBERSHIP", path)
    return path


@pytest.fixture
def v1(tmp_path: Path, membership: Path) -> Path:
    root = tmp_path / "cgroup"
    (root / "memory" / "own").mkdir(parents=True)
    (root / "memory" / "memory.limit_in_bytes").touch()
    return root


@pytest.fixture
def v2(tmp_path: Path, membership: Path) -> Path:
    root = tmp_path / "cgroup"
    (root / "own").mkdir(parents=True)
    (root / "cgroup.controllers").write_text("cpu memory pids\n")
    (root / "own" / "cgroup.subtree_control").write_text("memory\n")
    return root


@pytest.fixture
def _removable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel removes a group with its files."""
    rmdir = os.rmdir

    def remove(path: str) -> None:
        for file in Path(path).iterdir():
            file.unlink()
        rmdir(path)

    monkeypatch.setattr(os, "rmdir", remove)


@pytest.mark.parametrize("version", ["cgroup v1", "cgroup v2"])
def test_each_slot_gets_a_limited_group_below_the_own_one(tmp_path: Path, request: pytest.FixtureRequest, version: str) -> None:
    root = request.getfixturevalue(version.removeprefix("cgroup "))
    made = execution(tmp_path)
    folders, in_force = make_memory_cgroups(made, root)
    assert can_limit_memory(root) == (True, version)
    assert in_force == f"{version} and watchdog"
    assert [Path(folder).name for folder in folders] == [f"tuneoff-{made.execution_id}-{slot}" for slot in range(2)]
    for folder in map(Path, folders):
        assert folder.parent.name == "own"
        assert (folder / LIMIT[version]).read_text() == "600000000"
        assert (folder / "cgroup.procs").read_text().strip().isdigit()  # a process did enter
    assert remembered(made.folder) == [("cgroup", folder) for folder in folders]


def test_swap_is_limited_too_so_that_a_process_over_its_limit_ends(tmp_path: Path, v1: Path) -> None:
    folders, _ = make_memory_cgroups(execution(tmp_path), v1)
    assert (Path(folders[0]) / "memory.memsw.limit_in_bytes").read_text() == "600000000"


def test_without_a_limit_no_group_is_made(tmp_path: Path, v1: Path) -> None:
    assert make_memory_cgroups(execution(tmp_path, memory_mb=None), v1) == ([], "none (no limit asked for)")
    assert list((v1 / "memory" / "own").iterdir()) == []


def test_without_a_controller_the_watchdog_limits_alone(tmp_path: Path, membership: Path) -> None:
    root = tmp_path / "cgroup"
    root.mkdir()
    assert can_limit_memory(root) == (False, "no memory controller")
    assert make_memory_cgroups(execution(tmp_path), root) == ([], "watchdog (no memory controller)")


def test_a_controller_that_is_not_delegated_is_no_limit(tmp_path: Path, v2: Path) -> None:
    (v2 / "own" / "cgroup.subtree_control").write_text("cpu pids\n")
    reason = "cgroup v2 without a delegated memory controller"
    assert can_limit_memory(v2) == (False, reason)
    assert make_memory_cgroups(execution(tmp_path), v2) == ([], f"watchdog ({reason})")


@pytest.mark.parametrize("version", ["cgroup v1", "cgroup v2"])
def test_without_permission_to_make_groups_the_watchdog_limits_alone(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    root = request.getfixturevalue(version.removeprefix("cgroup "))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    reason = f"{version}, but no permission to make groups"
    assert can_limit_memory(root) == (False, reason)
    assert make_memory_cgroups(execution(tmp_path), root) == ([], f"watchdog ({reason})")


@pytest.mark.usefixtures("_removable")
def test_a_group_that_cannot_be_made_takes_the_earlier_ones_with_it(
    tmp_path: Path, v2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Path.mkdir

    def refuse(self: Path, *arguments: Any) -> None:
        if self.name.endswith("-1"):
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        original(self, *arguments)

    monkeypatch.setattr(Path, "mkdir", refuse)
    made = execution(tmp_path)
    assert make_memory_cgroups(made, v2) == ([], "watchdog (cgroup v2: Operation not permitted)")
    assert [path.name for path in (v2 / "own").iterdir()] == ["cgroup.subtree_control"]


@pytest.mark.usefixtures("_removable")
def test_a_group_that_no_process_can_join_is_removed_and_the_reason_is_in_the_record(
    tmp_path: Path, v2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "joining_problem", lambda folder: "joining failed: Device or resource busy")
    reason = "watchdog (cgroup v2: joining failed: Device or resource busy)"
    assert make_memory_cgroups(execution(tmp_path), v2) == ([], reason)
    assert [path.name for path in (v2 / "own").iterdir()] == ["cgroup.subtree_control"]


def test_a_refused_entry_is_told_with_its_reason(tmp_path: Path) -> None:
    assert joining_problem(tmp_path) is None  # an ordinary file takes any number
    (tmp_path / "refused" / "cgroup.procs").mkdir(parents=True)
    assert joining_problem(tmp_path / "refused") == "joining failed: Is a directory"
    assert "nonexistent" in (joining_problem(tmp_path / "missing") or "")


@pytest.mark.skipif(not can_limit_memory()[0], reason="no memory control group can be made here")
def test_a_real_group_is_made_entered_and_removed(tmp_path: Path) -> None:
    made = execution(tmp_path)
    folders, in_force = make_memory_cgroups(made)
    if not folders:
        pytest.skip(in_force)
    assert all(Path(folder).is_relative_to(ROOT) for folder in folders)
    assert all((Path(folder) / "cgroup.procs").read_text() == "" for folder in folders)  # the one that tried has ended
    assert clean_execution(made.folder) == []
    assert not any(Path(folder).exists() for folder in folders)
