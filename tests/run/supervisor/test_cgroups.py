"""Where control groups can be made, on folders that look like the kernel's; real groups where this machine has them."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from builders.specs import make_spec
from tuneoff.experiment.spec import Workers
from tuneoff.run.supervisor import cgroups
from tuneoff.run.supervisor.cgroups import (
    LIMIT_FILES,
    ROOT,
    Controller,
    Groups,
    enter,
    group_sites,
    joining_problem,
    make_groups,
    own_memory,
    own_quota,
)
from tuneoff.run.supervisor.execution import Execution
from tuneoff.run.supervisor.leftovers import clean_execution, remembered

VERSIONS = ("cgroup v1", "cgroup v2")
MEMORY: dict[Controller, float] = {"memory": 600e6}
CPU: dict[Controller, float] = {"cpu": 0.5}
BOTH: dict[Controller, float] = {**MEMORY, **CPU}
WRITTEN = {
    ("cgroup v1", "memory"): "600000000",
    ("cgroup v1", "cpu"): "50000",
    ("cgroup v2", "memory"): "600000000",
    ("cgroup v2", "cpu"): "50000 100000",
}


def execution(tmp_path: Path) -> Execution:
    folder = tmp_path / "execution"
    folder.mkdir()
    return Execution(spec=make_spec(workers=Workers(count=2)), execution_id=f"e-{os.urandom(4).hex()}", folder=folder)


@pytest.fixture
def membership(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What /proc/self/cgroup says: this process's own groups."""
    path = tmp_path / "membership"
    path.write_text("4:memory:/own\n1:cpu,cpuacct:/own\n0::/above/own\n")
    monkeypatch.setattr(cgroups, "MEMBERSHIP", path)
    return path


@pytest.fixture
def v1(tmp_path: Path, membership: Path) -> Path:
    root = tmp_path / "cgroup"
    for controller in ("memory", "cpu"):
        (root / controller / "own").mkdir(parents=True)
        (root / controller / "cgroup.procs").touch()
    return root


@pytest.fixture
def v2(tmp_path: Path, membership: Path) -> Path:
    """This process's own group has processes, so it hands nothing down; the one above it does."""
    root = tmp_path / "cgroup"
    (root / "above" / "own").mkdir(parents=True)
    (root / "cgroup.controllers").write_text("cpu memory pids\n")
    (root / "cgroup.subtree_control").write_text("cpu memory pids\n")
    (root / "above" / "cgroup.subtree_control").write_text("cpu memory\n")
    (root / "above" / "own" / "cgroup.subtree_control").write_text("\n")
    return root


@pytest.fixture
def root(request: pytest.FixtureRequest, version: str) -> Path:
    found: Path = request.getfixturevalue(version.removeprefix("cgroup "))
    return found


@pytest.fixture
def _removable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel removes a group with its files."""
    rmdir = os.rmdir

    def remove(path: str) -> None:
        for file in Path(path).iterdir():
            file.unlink()
        rmdir(path)

    monkeypatch.setattr(os, "rmdir", remove)


def refuse(monkeypatch: pytest.MonkeyPatch, method: str, ending: str) -> None:
    """Let the kernel refuse what ends so."""
    original = getattr(Path, method)

    def refusing(self: Path, *arguments: Any, **more: Any) -> Any:
        if str(self).endswith(ending):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return original(self, *arguments, **more)

    monkeypatch.setattr(Path, method, refusing)


def groups_in(root: Path) -> list[Path]:
    return list(root.rglob("tuneoff-*"))


# --- where ---


@pytest.mark.parametrize("version", VERSIONS)
def test_both_controllers_are_found_in_the_own_group_or_in_the_one_above_it(root: Path, version: str) -> None:
    found = group_sites(("memory", "cpu"), root)
    assert {controller: place.text for controller, place in found.items()} == {"memory": version, "cpu": version}
    expected = {"cgroup v1": [root / "memory" / "own", root / "cpu" / "own"], "cgroup v2": [root / "above"] * 2}
    assert [place.parent for place in found.values()] == expected[version]


def test_without_a_controller_there_is_no_place(tmp_path: Path, membership: Path) -> None:
    found = group_sites(("memory", "cpu"), tmp_path / "nothing")
    assert [(place.text, place.parent) for place in found.values()] == [
        ("no memory controller", None),
        ("no cpu controller", None),
    ]


def test_a_controller_that_is_not_delegated_limits_nothing(v2: Path) -> None:
    for folder in (v2, v2 / "above"):
        (folder / "cgroup.subtree_control").write_text("memory pids\n")
    found = group_sites(("memory", "cpu"), v2)
    assert found["memory"].parent == v2 / "above"
    assert found["cpu"].parent is None
    assert group_sites(("cpu",), v2)["cpu"].text == "cgroup v2 without a delegated cpu controller"


def test_where_no_group_has_both_controllers_memory_has_its_place(v2: Path) -> None:
    (v2 / "above" / "cgroup.subtree_control").write_text("memory\n")
    (v2 / "cgroup.subtree_control").write_text("cpu\n")
    found = group_sites(("memory", "cpu"), v2)
    assert found["memory"].parent == v2 / "above"
    assert (found["cpu"].parent, found["cpu"].text) == (
        None,
        "cgroup v2 without a delegated cpu controller beside that of memory",
    )
    assert group_sites(("cpu",), v2)["cpu"].parent == v2


@pytest.mark.parametrize("version", VERSIONS)
def test_without_permission_to_make_groups_the_reason_says_so(
    root: Path, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    text = f"{version}, but no permission to make groups"
    assert make_groups(execution(tmp_path), BOTH, root) == {"memory": Groups(text=text), "cpu": Groups(text=text)}


@pytest.mark.parametrize(
    ("version", "file", "content", "expected"),
    [
        ("cgroup v1", "cpu/own/cpu.cfs_quota_us", "150000", 1.5),
        ("cgroup v1", "cpu/own/cpu.cfs_quota_us", "-1", None),
        ("cgroup v1", "cpu/cpu.cfs_quota_us", "50000", 0.5),  # a container may see its own group alone
        ("cgroup v2", "above/own/cpu.max", "50000 100000", 0.5),
        ("cgroup v2", "above/own/cpu.max", "max 100000", None),
        ("cgroup v2", "cpu.max", "50000 100000", 0.5),
        ("cgroup v1", "memory/own/memory.limit_in_bytes", "max", None),
        ("cgroup v1", "memory/own/memory.limit_in_bytes", "600000000", 600_000_000),
        ("cgroup v2", "above/own/memory.max", "max", None),
        ("cgroup v2", "above/own/memory.max", "600000000", 600_000_000),
    ],
)
def test_the_limits_of_a_container_are_read(
    root: Path, version: str, file: str, content: str, expected: float | None, membership: Path
) -> None:
    own = own_memory if "memory" in file else own_quota
    if "own" not in file:
        membership.write_text("1:cpu,cpuacct:/of/the/host\n0::/of/the/host\n")
    assert own(root) is None
    (root / file).write_text(f"{content}\n")
    if file.endswith("quota_us"):
        (root / file).with_name("cpu.cfs_period_us").write_text("100000")
    assert own(root) == expected


# --- making ---


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("limits", [MEMORY, CPU, BOTH])
def test_each_slot_gets_a_limited_group_that_a_process_did_enter(
    tmp_path: Path, root: Path, version: str, limits: dict[Controller, float]
) -> None:
    made = execution(tmp_path)
    groups = make_groups(made, limits, root)
    assert {controller: item.text for controller, item in groups.items()} == dict.fromkeys(limits, version)
    for controller, item in groups.items():
        assert [Path(folder).name for folder in item.folders] == [f"tuneoff-{made.execution_id}-{slot}" for slot in range(2)]
        for folder in map(Path, item.folders):
            assert (folder / LIMIT_FILES[version, controller]).read_text() == WRITTEN[version, controller]
            assert (folder / "cgroup.procs").read_text().strip().isdigit()
    folders = list(dict.fromkeys(folder for item in groups.values() for folder in item.folders))
    assert remembered(made.folder) == [("cgroup", folder) for folder in folders]
    assert len(folders) == (2 * len(limits) if version == "cgroup v1" else 2)


def test_swap_is_limited_too_so_that_a_process_over_its_limit_ends(tmp_path: Path, v1: Path) -> None:
    folder = Path(make_groups(execution(tmp_path), MEMORY, v1)["memory"].folders[0])
    assert (folder / "memory.memsw.limit_in_bytes").read_text() == "600000000"


def test_a_kernel_without_swap_accounting_limits_memory_all_the_same(
    tmp_path: Path, v1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, "write_text", "memory.memsw.limit_in_bytes")
    assert len(make_groups(execution(tmp_path), MEMORY, v1)["memory"].folders) == 2


def test_without_a_limit_no_group_is_made(tmp_path: Path, v1: Path) -> None:
    assert make_groups(execution(tmp_path), {}, v1) == {}
    assert groups_in(v1) == []


@pytest.mark.usefixtures("_removable")
def test_a_group_that_cannot_be_made_takes_the_earlier_ones_with_it(
    tmp_path: Path, v2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, "mkdir", "-1")
    assert make_groups(execution(tmp_path), MEMORY, v2) == {"memory": Groups(text="cgroup v2: Invalid argument")}
    assert groups_in(v2) == []


@pytest.mark.usefixtures("_removable")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_quota_that_the_kernel_refuses_leaves_the_limit_of_memory(
    tmp_path: Path, root: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, "write_text", LIMIT_FILES[version, "cpu"])
    groups = make_groups(execution(tmp_path), BOTH, root)
    assert groups["cpu"] == Groups(text=f"{version}: Invalid argument")
    assert len(groups["memory"].folders) == len(groups_in(root)) == 2


@pytest.mark.usefixtures("_removable")
def test_a_group_that_no_process_can_join_is_removed_and_the_reason_is_told(
    tmp_path: Path, v2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "joining_problem", lambda folder: "joining failed: Device or resource busy")
    text = "cgroup v2: joining failed: Device or resource busy"
    assert make_groups(execution(tmp_path), BOTH, v2) == {"memory": Groups(text=text), "cpu": Groups(text=text)}
    assert groups_in(v2) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_run_enters_a_group_of_its_own_that_the_slots_are_below_and_leaves_it(
    tmp_path: Path, root: Path, version: str, membership: Path
) -> None:
    run = execution(tmp_path)
    groups = make_groups(run, BOTH, root, of_run=True)
    of_run = [Path(item.folders[0]) for item in groups.values()]
    assert {folder.name for folder in of_run} == {f"tuneoff-{run.execution_id}-2"}
    leave = enter(run, groups, root)
    entered = of_run if version == "cgroup v1" else [of_run[0] / f"tuneoff-{run.execution_id}-3"]
    assert {(folder / "cgroup.procs").read_text() for folder in entered} == {str(os.getpid())}
    if version == "cgroup v2":
        assert (of_run[0] / "cgroup.subtree_control").read_text() == "+memory +cpu"
        (of_run[0] / "cgroup.subtree_control").write_text("memory cpu\n")  # as the kernel tells it
    paths = {name: f"/{folder.relative_to(root / name)}" for name, folder in zip(BOTH, of_run, strict=True) if version[-1] == "1"}
    below = f"/{entered[0].relative_to(root)}"
    membership.write_text(f"4:memory:{paths.get('memory')}\n1:cpu,cpuacct:{paths.get('cpu')}\n0::{below}\n")
    slots = [Path(folder) for item in make_groups(run, BOTH, root).values() for folder in item.folders]
    assert {folder.parent for folder in slots} == set(of_run)
    events = entered[0] / ("memory.oom_control" if version == "cgroup v1" else "memory.events")
    events.write_text("low 0\noom_kill 2\n")
    assert leave() == 2
    own = ["memory/own", "cpu/own"] if version == "cgroup v1" else ["above/own"]
    assert {(root / folder / "cgroup.procs").read_text() for folder in own} == {str(os.getpid())}
    assert [value for _, value in remembered(run.folder)][-1] == str(slots[-1])  # they are removed first


def test_a_refused_entry_is_told_with_its_reason(tmp_path: Path) -> None:
    assert joining_problem(tmp_path) is None  # an ordinary file takes any number
    (tmp_path / "refused" / "cgroup.procs").mkdir(parents=True)
    assert joining_problem(tmp_path / "refused") == "joining failed: Is a directory"
    assert "nonexistent" in (joining_problem(tmp_path / "missing") or "")


@pytest.mark.parametrize("controller", ["memory", "cpu"])
def test_a_real_group_is_made_entered_and_removed(tmp_path: Path, controller: Controller) -> None:
    made = execution(tmp_path)
    groups = make_groups(made, {controller: BOTH[controller]})[controller]
    if not groups.folders:
        pytest.skip(groups.text)
    assert all(Path(folder).is_relative_to(ROOT) for folder in groups.folders)
    assert all((Path(folder) / "cgroup.procs").read_text() == "" for folder in groups.folders)  # the one that tried has ended
    assert clean_execution(made.folder) == []
    assert not any(Path(folder).exists() for folder in groups.folders)
