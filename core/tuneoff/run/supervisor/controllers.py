"""Where control groups can be made that limit memory or CPU time, and why not; makes nothing."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where groups with a controller can be made: `parent` is None where they cannot, and `text` says why; else the version."""

    text: str
    parent: Path | None = None

    @property
    def version(self) -> str:
        """`V1` or `V2`, or "" where there is no such controller."""
        return next((version for version in (V1, V2) if self.text.startswith(version)), "")


def places(wanted: Sequence[Controller], root: Path | None = None) -> dict[Controller, Place]:
    """Return the place for each wanted controller.

    With cgroup v2 a process is in one group only: where no place has all of them, the first one in `wanted` has its place.
    """
    root = root or ROOT
    found = {controller: place for controller in wanted if (place := _v1_place(root, controller)) is not None}
    rest = [controller for controller in wanted if controller not in found]
    return {**found, **_v2_places(root, rest)} if rest else found


def own_quota(root: Path | None = None) -> float | None:
    """Return how many processors' time this process's own group may use, as in a container with a limit; None: no limit."""
    root = root or ROOT
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        if (root / "cpu" / "cgroup.procs").exists():
            group = _own_group(root / "cpu", "cpu")
            quota = int((group / "cpu.cfs_quota_us").read_text())
            return quota / int((group / "cpu.cfs_period_us").read_text()) if quota > 0 else None
        quota_text, period_text = (_own_group(root, "") / "cpu.max").read_text().split()
        return int(quota_text) / int(period_text)  # "max" is no limit
    return None


def _v1_place(root: Path, controller: Controller) -> Place | None:
    """Return the place in a hierarchy of version 1, or None where the controller has none."""
    mount = root / controller
    if not ((mount / LIMIT_FILES[V1, controller]).exists() or (mount / "cgroup.procs").exists()):
        return None
    for candidate in (_own_group(mount, controller), mount):
        if _is_writable(candidate):
            return Place(text=V1, parent=candidate)
    return Place(text=f"{V1}, but {NO_PERMISSION}")


def _v2_places(root: Path, wanted: Sequence[Controller]) -> dict[Controller, Place]:
    if not (root / "cgroup.controllers").exists():
        return {controller: Place(text=f"no {controller} controller") for controller in wanted}
    own = _own_group(root, "")
    # a group that has processes can hand no controller down: a group further up does, beside this process's own one
    above = [folder for folder in (own, *own.parents) if folder.is_relative_to(root)]
    writable = [folder for folder in above if _is_writable(folder)]
    if not writable:
        return {controller: Place(text=f"{V2}, but {NO_PERMISSION}") for controller in wanted}
    handed_down = [(folder, _handed_down(folder)) for folder in writable]
    for together in (wanted, *([controller] for controller in wanted)):
        parent = next((folder for folder, controllers in handed_down if controllers.issuperset(together)), None)
        if parent is not None:
            lacking = {c: Place(text=f"{V2} without a delegated {c} controller beside that of {together[0]}") for c in wanted}
            return {**lacking, **{controller: Place(text=V2, parent=parent) for controller in together}}
    return {controller: Place(text=f"{V2} without a delegated {controller} controller") for controller in wanted}


def _handed_down(group: Path) -> set[str]:
    """Return the controllers that groups below a group have."""
    with contextlib.suppress(OSError):
        return set((group / "cgroup.subtree_control").read_text().split())
    return set()


def _own_group(mount: Path, controller: str) -> Path:
    """Return this process's own group below a mount: of a controller with version 1, of none ("") with version 2."""
    with contextlib.suppress(OSError, ValueError):
        for line in MEMBERSHIP.read_text().splitlines():
            _, names, path = line.split(":", 2)
            if (controller and controller in names.split(",")) or (not controller and not names):
                return mount / path.lstrip("/")
    return mount


def _is_writable(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK)
