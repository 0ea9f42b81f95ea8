"""One cell of the matrix: an adapter, a setting and a fault; where its files lie, and what its workload is given."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuneoff.base.processes import kill
from tuneoff.experiment.spec import RunSpec
from tuneoff.judge.faults import Fault, Setting
from tuneoff.trust.faultmatrix.child import Ended, cell_prefix, end_cell, kill_parts, python, run_child
from tuneoff.trust.faultmatrix.tools import FaultTools

SETTINGS: tuple[Setting, ...] = ("defaults", "adapter")
STRUCK = ".struck"  # as the workload has it
HOLD_SECONDS = 20.0  # how long a trial waits to be struck
DISK_MEGABYTES = 96
PROGRAM_MEGABYTES = 1500  # of a plain program and its framework, beside its trials
_LOCK_SECONDS = 10.0  # at most, until a lock is free for a moment


class NotStruck(Exception):
    """The fault could not be planted, so the run tells nothing of it; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What is to be run; `spec` is the file's run of this adapter."""

    number: int
    label: str
    setting: Setting
    fault: Fault
    spec: RunSpec
    tools: FaultTools | None
    faulty: int  # index of the configuration that meets the fault

    @property
    def name(self) -> str:
        """A name in the world: of a group, of a mark."""
        return f"{cell_prefix(os.getpid())}{self.number}"


@dataclass(slots=True, kw_only=True)
class Place:
    """Where a cell runs: its folder, and what can be made on this machine."""

    folder: Path
    kept: Path  # where the files of a small disk are kept
    has_disk: bool
    stopping: threading.Event  # the whole command ends
    _struck: bool = field(default=False)

    @property
    def once(self) -> Path:
        """The file that the workload makes when the fault strikes."""
        return self.folder / "once"

    @property
    def is_struck(self) -> bool:
        """Whether the trial waited to be struck."""
        return self._struck

    def is_due(self) -> bool:
        """Tell, once, that the trial waits to be struck."""
        if self._struck or not self.once.exists():
            return False
        self._struck = True
        return True

    def go_on(self) -> None:
        """Tell the trial that it was struck."""
        self.once.with_name(f"{self.once.name}{STRUCK}").touch()


def workload_options(cell: Cell, place: Place, allocate_mb: float, hold_seconds: float = HOLD_SECONDS) -> dict[str, Any]:
    """Return the options of the workload: the file's, and the fault on its one configuration."""
    experiment, fault = cell.spec.experiment, cell.fault
    options = {**experiment.workload.options, "at_epoch": fault.at_epoch}
    if fault.kind is None:
        return {**options, "configurations": []}
    options.update(kinds=[fault.kind], configurations=[dict(experiment.configurations[cell.faulty])])
    if fault.once:
        options["once"] = str(place.once)
    if fault.kind == "disk_full" and place.has_disk:
        options["fill_folder"] = str(place.folder)
    return {**options, "allocate_mb": allocate_mb, "hold_seconds": hold_seconds}


def run_cell(cell: Cell, place: Place, command: Sequence[str], seconds: float) -> Ended:
    """Run a program of the cell until its end or its limit; a fault from outside strikes it, once, when its trial waits for that.

    Raises:
        NotStruck: the part that is to be taken away is not there.
    """
    is_wrapped = is_on_disk(cell, place)
    if is_wrapped:
        disk = [str(place.folder), str(place.kept), str(DISK_MEGABYTES)]
        command = python("-m", "tuneoff.trust.faultmatrix.small_disk", *disk, *command)
    look = functools.partial(_look, cell, place)
    return run_child(command, place.folder, cell.name, seconds, look, place.stopping, wrapped=is_wrapped)


def is_on_disk(cell: Cell, place: Place) -> bool:
    """Tell whether the cell's folder is a small disk while its program runs."""
    return cell.fault.kind == "disk_full" and place.has_disk


def folder_after(cell: Cell, place: Place) -> Path:
    """Return where the files of the cell's program lie once it has ended."""
    return place.kept if is_on_disk(cell, place) else place.folder


def _look(cell: Cell, place: Place, pid: int) -> None:
    if cell.fault.strike is None or not place.is_due():
        return
    if cell.fault.strike == "driver":
        kill(pid)
    else:
        break_part(cell, place)
    place.go_on()


def break_part(cell: Cell, place: Place) -> None:
    """Take away the part of the framework that the fault strikes.

    Raises:
        NotStruck: it is not there.
    """
    part = cell.tools.part(cell.fault.name) if cell.tools is not None else None
    assert part is not None
    if part.process and kill_parts(cell.name, part.process) == 0:
        raise NotStruck(f"no process of this run has {part.process!r} in its command line")
    for name in filter(None, (part.file, part.lock)):
        found = [path for path in place.folder.rglob(name) if path.is_file()]
        if not found:
            raise NotStruck(f"no file of this run is named {name!r}")
        for path in found:
            if part.file:
                path.unlink()
            else:
                _lock(path)


def end(cell: Cell, wait_seconds: float = 0.0) -> None:
    """End every process of the cell."""
    end_cell(cell.name, wait_seconds)


def _lock(path: Path) -> None:
    """Leave the lock as Optuna's default one is held: a link beside the file. Whoever has it now gives it back within moments.

    Raises:
        NotStruck: nobody gave it back.
    """
    deadline = time.monotonic() + _LOCK_SECONDS
    while time.monotonic() < deadline:
        try:
            os.symlink(path, f"{path}.lock")
        except FileExistsError:
            continue
        return
    raise NotStruck(f"the lock {path.name}.lock was never free within {_LOCK_SECONDS:g} s")
