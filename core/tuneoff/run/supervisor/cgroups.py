"""Control groups with limits, one per slot or one per run, where they can be made (root, or delegation)."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tuneoff.record.run_context import remember
from tuneoff.run.supervisor.execution import Execution
from tuneoff.run.trial.faults import out_of_memory_kills

Controller = Literal["memory", "cpu"]

ROOT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
V1, V2 = "cgroup v1", "cgroup v2"
NO_PERMISSION = "no permission to make groups"

# the file of a group that holds the limit
LIMIT_FILES: dict[tuple[str, Controller], str] = {
    (V1, "memory"): "memory.limit_in_bytes",
    (V1, "cpu"): "cpu.cfs_quota_us",
    (V2, "memory"): "memory.max",
    (V2, "cpu"): "cpu.max",
}
JOIN_SECONDS = 5.0
PERIOD_US = 100_000  # in which a group may use its quota of CPU time; the kernel's own default


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSite:
    """Where groups with a controller can be made: `parent` is None where they cannot, and `text` says why; else the version."""

    text: str
    parent: Path | None = None

    @property
    def version(self) -> str:
        """`V1` or `V2`, or "" where there is no such controller."""
        return next((version for version in (V1, V2) if self.text.startswith(version)), "")


def group_sites(wanted: Sequence[Controller], root: Path | None = None) -> dict[Controller, GroupSite]:
    """Return the site for each wanted controller.

    With cgroup v2 a process is in one group only: where no site has all of them, the first one in `wanted` has its site.
    """
    root = root or ROOT
    sites: dict[Controller, GroupSite] = {}
    for controller in wanted:
        mount = root / controller
        if (mount / LIMIT_FILES[V1, controller]).exists() or (mount / "cgroup.procs").exists():  # a hierarchy of version 1
            parent = next(filter(_is_writable, (_own_group(mount, controller), mount)), None)
            sites[controller] = GroupSite(text=f"{V1}, but {NO_PERMISSION}" if parent is None else V1, parent=parent)
    rest = [controller for controller in wanted if controller not in sites]
    return {**sites, **_v2_sites(root, rest)} if rest else sites


def own_quota(root: Path | None = None) -> float | None:
    """Return how many processors' time this process's own group may use, as in a container with a limit; None: no limit."""
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):  # "max" is not a limit
        file = _own_limit("cpu", root or ROOT)
        quota, *period = file.read_text().split()
        (period_text,) = period or file.with_name("cpu.cfs_period_us").read_text().split()
        return int(quota) / int(period_text) if int(quota) > 0 else None
    return None


def own_memory(root: Path | None = None) -> int | None:
    """Return how many bytes of memory this process's own group may use, as in a container with a limit; None: no limit."""
    with contextlib.suppress(OSError, ValueError):  # "max" is not a limit
        return int(_own_limit("memory", root or ROOT).read_text())
    return None


def _own_limit(controller: Controller, root: Path) -> Path:
    """Return the file with a limit of this process's own group."""
    if (root / controller / "cgroup.procs").exists():
        return _own_group(root / controller, controller) / LIMIT_FILES[V1, controller]
    return _own_group(root, "") / LIMIT_FILES[V2, controller]


def _v2_sites(root: Path, wanted: Sequence[Controller]) -> dict[Controller, GroupSite]:
    if not (root / "cgroup.controllers").exists():
        return {controller: GroupSite(text=f"no {controller} controller") for controller in wanted}
    group = _own_group(root, "")
    # a group that has processes can hand no controller down: a group further up does, beside this process's own one
    above = [folder for folder in (group, *group.parents) if folder.is_relative_to(root)]
    writable = [folder for folder in above if _is_writable(folder)]
    if not writable:
        return {controller: GroupSite(text=f"{V2}, but {NO_PERMISSION}") for controller in wanted}
    handed_down: dict[Path, set[str]] = {}  # the controllers that groups below a group have
    for folder in writable:
        with contextlib.suppress(OSError):
            handed_down[folder] = set((folder / "cgroup.subtree_control").read_text().split())
    for together in (wanted, *([controller] for controller in wanted)):
        parent = next((folder for folder, controllers in handed_down.items() if controllers.issuperset(together)), None)
        if parent is not None:
            lacking = {c: GroupSite(text=f"{V2} without a delegated {c} controller beside that of {together[0]}") for c in wanted}
            return {**lacking, **{controller: GroupSite(text=V2, parent=parent) for controller in together}}
    return {controller: GroupSite(text=f"{V2} without a delegated {controller} controller") for controller in wanted}


def _own_group(mount: Path, controller: str) -> Path:
    """Return this process's own group below a mount: of a controller with version 1, of none ("") with version 2."""
    with contextlib.suppress(OSError, ValueError):
        for line in MEMBERSHIP.read_text().splitlines():
            _, names, path = line.split(":", 2)
            if (controller and controller in names.split(",")) or (not controller and not names):
                group = mount / path.lstrip("/")
                return group if group.is_dir() else mount  # a container may see its own group alone, in place of the mount
    return mount


def _is_writable(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Groups with one limit: a folder per slot and the version, or no folders and in `text` why there are none."""

    text: str
    folders: tuple[str, ...] = ()


def make_groups(
    execution: Execution, limits: Mapping[Controller, float], root: Path | None = None, *, of_run: bool = False
) -> dict[Controller, Groups]:
    """Make a group per slot and return it by controller; `limits`: bytes of memory, processors' worth of CPU time.

    Each is remembered before it is made. Where a process cannot enter one, all are removed; a refused limit is left out.
    `of_run`: one group alone, for the whole run, numbered after the slots.
    """
    count = execution.spec.experiment.workers.count
    numbers = (count,) if of_run else range(count)
    sites = group_sites(list(limits), root)
    groups = {controller: Groups(text=site.text) for controller, site in sites.items()}
    for parent in dict.fromkeys(site.parent for site in sites.values() if site.parent is not None):
        together = [controller for controller, site in sites.items() if site.parent == parent]
        version = sites[together[0]].version
        folders = [_folder(execution, parent, number) for number in numbers]
        for names in (together, *([name] for name in together if len(together) > 1)):  # where one limit is refused: the other
            problem = _make_all(execution, folders, {name: limit_settings(version, name, limits[name]) for name in names})
            of_site = Groups(text=f"{version}: {problem}") if problem else Groups(text=version, folders=tuple(map(str, folders)))
            groups.update(dict.fromkeys(names, of_site))
            if problem is None:
                break
    return groups


def enter(execution: Execution, groups: Mapping[Controller, Groups], root: Path | None = None) -> Callable[[], int]:
    """Put this process, and all that it starts from now on, into groups that limit a whole run; return what leaves them again,
    and tells how many processes in them, but those of slots, the kernel has ended for their memory.

    The groups of slots that are made from now on are below them. With cgroup v2 a group that hands controllers down has no
    process of its own: this one is in a group below it.
    """
    root = root or ROOT
    entered: list[Path] = []
    earlier: list[Path] = []
    for folder in map(Path, dict.fromkeys(name for of_controller in groups.values() for name in of_controller.folders)):
        names = [name for name, of_controller in groups.items() if str(folder) in of_controller.folders]
        if groups[names[0]].text == V2:
            (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in names))
            earlier.append(_own_group(root, ""))
            folder = _folder(execution, folder, execution.spec.experiment.workers.count + 1)
            remember(execution.folder, "cgroup", str(folder))
            folder.mkdir()
        else:
            earlier.append(_own_group(root / names[0], names[0]))
        entered.append(folder)
        _join(folder)

    def leave() -> int:
        for folder in earlier:
            _join(folder)
        return sum(map(out_of_memory_kills, entered))

    return leave


def _join(folder: Path) -> None:
    (folder / "cgroup.procs").write_text(str(os.getpid()))


def _make_all(execution: Execution, folders: Sequence[Path], settings: Mapping[Controller, Mapping[str, str]]) -> str | None:
    """Make all of these groups, or none of them, and return why."""
    for number, folder in enumerate(folders, start=1):
        remember(execution.folder, "cgroup", str(folder))
        if (problem := make_group(folder, settings)) is not None:
            for begun in folders[:number]:
                with contextlib.suppress(OSError):
                    os.rmdir(begun)
            return problem
    return None


def make_group(folder: Path, settings: Mapping[Controller, Mapping[str, str]]) -> str | None:
    """Make a group with the limits that `limit_settings` has for its controllers, or return why no process can have them."""
    try:
        folder.mkdir()
        for (file, limit), *others in (values.items() for values in settings.values()):
            (folder / file).write_text(limit)
            for other, value in others:
                with contextlib.suppress(OSError):  # absent on some kernels
                    (folder / other).write_text(value)
    except OSError as error:
        return error.strerror or str(error)
    return joining_problem(folder)


def limit_settings(version: str, controller: Controller, limit: float) -> dict[str, str]:
    """Return what to write into a group's files, the limit itself first."""
    file = LIMIT_FILES[version, controller]
    if controller == "cpu":
        quota = round(limit * PERIOD_US)
        return {file: str(quota)} if version == V1 else {file: f"{quota} {PERIOD_US}"}
    # without a limit of swap a process would swap instead of end; absent without swap accounting
    swap = {"memory.memsw.limit_in_bytes": str(int(limit))} if version == V1 else {"memory.swap.max": "0"}
    return {file: str(int(limit)), **swap}


def _folder(execution: Execution, parent: Path, number: int) -> Path:
    return parent / f"tuneoff-{execution.execution_id}-{number}"


def joining_problem(folder: Path) -> str | None:
    """Let a short process enter a group, as trials will, and return why it could not, or None.

    Only that tells: with cgroup v2 a process may be refused a group whose files it can write (its way leads over groups
    of others, or the group above has processes of its own).
    """
    command = ["/bin/sh", "-c", 'echo $$ > "$1"', "sh", str(folder / "cgroup.procs")]
    try:
        joined = subprocess.run(command, capture_output=True, text=True, timeout=JOIN_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"joining could not be tried: {error}"
    if joined.returncode == 0:
        return None
    return f"joining failed: {(joined.stderr.strip().splitlines() or ['no reason given'])[-1].rpartition(': ')[2]}"
