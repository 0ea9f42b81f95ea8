"""Memory control groups, one per slot, where they can be made (root, or delegation); else the watchdog alone limits."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

from tuneoff.lifecycle.context import remember
from tuneoff.supervisor.prepare import Execution

ROOT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
JOIN_SECONDS = 5.0


def make_memory_cgroups(execution: Execution, root: Path = ROOT) -> tuple[list[str], str]:
    """Make a limited group per slot; return their folders and what is in force, for the record.

    The second value is "none (no limit asked for)", "cgroup v1", "cgroup v2", or "watchdog: <why there is no group>".
    """
    workers = execution.spec.experiment.workers
    if workers.memory_mb is None:
        return [], "none (no limit asked for)"
    version, parent = _memory_parent(root)
    if parent is None:
        return [], f"watchdog ({version})"
    limit = str(int(workers.memory_mb * 10**6))
    folders: list[str] = []
    for slot in range(workers.count):
        folder = parent / f"tuneoff-{execution.execution_id}-{slot}"
        remember(execution.folder, "cgroup", str(folder))
        try:
            folder.mkdir()
            (folder / ("memory.limit_in_bytes" if version == "cgroup v1" else "memory.max")).write_text(limit)
            problem = joining_problem(folder)
        except OSError as error:
            problem = error.strerror or str(error)
        if problem is not None:
            for made in [*folders, str(folder)]:
                with contextlib.suppress(OSError):
                    os.rmdir(made)
            return [], f"watchdog ({version}: {problem})"
        with contextlib.suppress(OSError):  # without it a process would swap instead of end; absent without swap accounting
            swap = "memory.memsw.limit_in_bytes" if version == "cgroup v1" else "memory.swap.max"
            (folder / swap).write_text(limit if version == "cgroup v1" else "0")
        folders.append(str(folder))
    return folders, f"{version} and watchdog"


def joining_problem(folder: Path) -> str | None:
    """Let a short process enter a group, as trials will, and return why it could not, or None.

    Only that tells: with cgroup v2 a process may be refused a group whose files it can write (its way leads over groups
    of others, or the group above has processes of its own).
    """
    command = ["/bin/sh", "-c", 'echo $$ > "$1"', "sh", str(folder / "cgroup.procs")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=JOIN_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"joining could not be tried: {error}"
    if done.returncode == 0:
        return None
    return f"joining failed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1].rpartition(': ')[2]}"


def can_limit_memory(root: Path = ROOT) -> tuple[bool, str]:
    """Tell whether control groups could limit memory here, and which version, or why not; makes nothing."""
    version, parent = _memory_parent(root)
    return parent is not None, version


def _memory_parent(root: Path) -> tuple[str, Path | None]:
    """Return (version or reason, folder under which groups can be made)."""
    if (root / "memory" / "memory.limit_in_bytes").exists() or (root / "memory" / "cgroup.procs").exists():
        parent = _own_group(root / "memory", "memory")
        return "cgroup v1" if parent is not None else "cgroup v1, but no permission to make groups", parent
    controllers = root / "cgroup.controllers"
    if not controllers.exists():
        return "no memory controller", None
    parent = _own_group(root, "")
    if parent is None:
        return "cgroup v2, but no permission to make groups", None
    with contextlib.suppress(OSError):
        if "memory" in (parent / "cgroup.subtree_control").read_text().split():
            return "cgroup v2", parent
    return "cgroup v2 without a delegated memory controller", None


def _own_group(mount: Path, controller: str) -> Path | None:
    """Return this process's own group below a mount, if one can be made inside it."""
    relative = "/"
    with contextlib.suppress(OSError):
        for line in MEMBERSHIP.read_text().splitlines():
            _, names, path = line.split(":", 2)
            if names.split(",").count(controller) or (controller == "" and names == ""):
                relative = path
    for candidate in (mount / relative.lstrip("/"), mount):
        if candidate.is_dir() and os.access(candidate, os.W_OK):
            return candidate
    return None
