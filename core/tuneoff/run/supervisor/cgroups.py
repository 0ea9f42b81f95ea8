"""Control groups with limits, one per slot, where they can be made (root, or delegation)."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tuneoff.record.run_context import remember
from tuneoff.run.supervisor.controllers import LIMIT_FILES, V1, Controller, places
from tuneoff.run.supervisor.prepare import Execution

JOIN_SECONDS = 5.0
PERIOD_US = 100_000  # in which a group may use its quota of CPU time; the kernel's own default


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Groups with one limit: a folder per slot and the version, or no folders and in `text` why there are none."""

    text: str
    folders: tuple[str, ...] = ()


def make_groups(execution: Execution, limits: Mapping[Controller, float], root: Path | None = None) -> dict[Controller, Groups]:
    """Make a group per slot and return it by controller; `limits`: bytes of memory, processors' worth of CPU time.

    Each is remembered before it is made. One that no process can enter, or that takes no limit, is removed.
    """
    found = places(list(limits), root)
    made = {controller: Groups(text=place.text) for controller, place in found.items() if place.parent is None}
    parents = {controller: place.parent for controller, place in found.items() if place.parent is not None}
    while parents:
        first, parent = next(iter(parents.items()))
        version = found[first].version
        together = [controller for controller in parents if parents[controller] == parent]
        problem = _make_all(execution, parent, {name: _settings(version, name, limits[name]) for name in together})
        if problem is None:
            folders = tuple(str(_folder(execution, parent, slot)) for slot in range(_count(execution)))
            made.update({controller: Groups(text=version, folders=folders) for controller in together})
        else:  # without the controller whose limit was refused it is tried again
            together = [problem.controller] if problem.controller is not None else together
            made.update({controller: Groups(text=f"{version}: {problem.text}") for controller in together})
        parents = {controller: folder for controller, folder in parents.items() if controller not in made}
    return made


@dataclass(frozen=True, slots=True)
class _Problem:
    text: str
    controller: Controller | None = None  # whose limit the group did not take; None: there can be no group


def _make_all(execution: Execution, parent: Path, settings: Mapping[Controller, Mapping[str, str]]) -> _Problem | None:
    """Make the groups of all slots, or none of them."""
    made: list[Path] = []
    problem = None
    for slot in range(_count(execution)):
        folder = _folder(execution, parent, slot)
        remember(execution.folder, "cgroup", str(folder))
        made.append(folder)
        problem = _make(folder, settings)
        if problem is not None:
            break
    if problem is not None:
        for folder in made:
            with contextlib.suppress(OSError):
                os.rmdir(folder)
    return problem


def _make(folder: Path, settings: Mapping[Controller, Mapping[str, str]]) -> _Problem | None:
    try:
        folder.mkdir()
    except OSError as error:
        return _Problem(error.strerror or str(error))
    for controller, values in settings.items():
        for position, (file, value) in enumerate(values.items()):
            try:
                (folder / file).write_text(value)
            except OSError as error:
                if position == 0:  # what follows the limit itself is absent on some kernels
                    return _Problem(error.strerror or str(error), controller)
    problem = joining_problem(folder)
    return _Problem(problem) if problem is not None else None


def _settings(version: str, controller: Controller, limit: float) -> dict[str, str]:
    """Return what to write into a group's files, the limit itself first."""
    file = LIMIT_FILES[version, controller]
    if controller == "cpu":
        quota = round(limit * PERIOD_US)
        return {file: str(quota)} if version == V1 else {file: f"{quota} {PERIOD_US}"}
    # without a limit of swap a process would swap instead of end; absent without swap accounting
    swap = {"memory.memsw.limit_in_bytes": str(int(limit))} if version == V1 else {"memory.swap.max": "0"}
    return {file: str(int(limit)), **swap}


def _folder(execution: Execution, parent: Path, slot: int) -> Path:
    return parent / f"tuneoff-{execution.execution_id}-{slot}"


def _count(execution: Execution) -> int:
    return execution.spec.experiment.workers.count


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
