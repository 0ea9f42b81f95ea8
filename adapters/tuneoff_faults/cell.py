"""One cell of the matrix: an adapter, a setting and a fault; where its files lie, and what its workload is given."""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from tuneoff.base.layout import LOG
from tuneoff.base.process_limits import fresh_environment
from tuneoff.base.processes import MARK, command_line, end_all, kill, with_mark_and_sessions
from tuneoff.experiment.environments import CACHE_VARIABLE, cache
from tuneoff.experiment.spec import RunSpec
from tuneoff.run.child import ChildEnd, run_child
from tuneoff.run.supervisor.guardian import Announce, end_guarded
from tuneoff_faults.faults import TrialFault
from tuneoff_faults.faulty import GO_ON
from tuneoff_faults.plain import FaultTools

Setting = Literal["defaults", "adapter"]  # whose settings a run has: the framework's own, or its adapter's
SETTINGS: tuple[Setting, ...] = get_args(Setting)
CELL = "TUNEOFF_FAULTS_CELL"  # environment variable with the cell's name, in every process of it
MARK_FILE = "mark"
HOLD_SECONDS = 20.0  # how long a trial waits to be struck
DISK_MEGABYTES = 96
PROGRAM_MEGABYTES = 1500  # of a plain program and its framework, beside its trials
_LOCK_SECONDS = 10.0  # at most, until a lock is free for a moment


class NotStruck(Exception):
    """The fault could not be planted, so the run tells nothing of it; the text says why."""


@dataclass(slots=True, kw_only=True)
class MatrixCell:
    """What is to be run, `spec` is the experiment's run of this adapter; where, and what can be made on this machine."""

    number: int
    label: str
    setting: Setting
    fault: TrialFault
    spec: RunSpec
    tools: FaultTools | None
    faulty: int  # index of the configuration that meets the fault
    folder: Path
    has_disk: bool
    stopping: threading.Event  # the whole command ends
    announce: Announce = lambda folder: None  # told of what is made outside `folder`
    is_struck: bool = False  # the trial waited to be struck

    @property
    def name(self) -> str:
        """A name in the world: of a group, of a mark."""
        return f"faults-{os.getpid()}-{self.number}"

    @property
    def mark(self) -> Path:
        """The file that the workload makes when the fault strikes."""
        return self.folder / MARK_FILE

    @property
    def is_on_disk(self) -> bool:
        """Whether its folder is a small disk while its program runs."""
        return self.fault.kind == "disk_full" and self.has_disk

    @property
    def kept(self) -> Path:
        """Where the files of its program lie once that has ended."""
        return self.folder.with_name(f"{self.folder.name}k") if self.is_on_disk else self.folder

    @property
    def processes(self) -> list[int]:
        """Its living processes, and those of its sessions."""
        return with_mark_and_sessions(CELL, self.name)


def workload_options(cell: MatrixCell, allocate_mb: float, hold_seconds: float = HOLD_SECONDS) -> dict[str, Any]:
    """Return the options of the workload: the experiment's, and the fault on its one configuration."""
    experiment, fault = cell.spec.experiment, cell.fault
    options = {**experiment.workload.options, "at_epoch": fault.at_epoch}
    if fault.kind is None:
        return {**options, "configurations": []}
    options.update(kinds=[fault.kind], configurations=[dict(experiment.configurations[cell.faulty])])
    options.update(mark=str(cell.mark), once=fault.once)
    if cell.is_on_disk:
        options["fill_folder"] = str(cell.folder)
    return {**options, "allocate_mb": allocate_mb, "hold_seconds": hold_seconds}


def run_cell(cell: MatrixCell, command: Sequence[str], seconds: float) -> ChildEnd:
    """Run a program of the cell until its end or its limit; a fault from outside strikes it, once, when its trial waits for that.

    Raises:
        NotStruck: the part that is to be taken away is not there.
    """
    temporary = cell.folder / "t"
    temporary.mkdir(exist_ok=True)
    environment = fresh_environment(1, temporary, HOME=str(cell.folder), PYTHONUNBUFFERED="1", **{CELL: cell.name})
    if cell.spec.environment is not None and cell.setting == "adapter":  # the command finds it there
        environment[CACHE_VARIABLE] = str(cache().parent)
    if cell.is_on_disk:
        disk = [str(cell.folder), str(cell.kept), str(DISK_MEGABYTES)]
        command = python("-m", "tuneoff_faults.small_disk", *disk, *command)

    def end_parts(pid: int) -> None:  # not what made the disk: that keeps its files
        end_all(lambda: [other for other in cell.processes if other != pid])

    return run_child(
        command,
        cell.folder / LOG,
        seconds,
        {name: value for name, value in environment.items() if name != MARK},
        cwd=cell.folder,
        look=functools.partial(_look, cell),
        is_stopped=cell.stopping.is_set,
        end_parts=end_parts if cell.is_on_disk else None,
    )


def python(*arguments: str) -> list[str]:
    """Return the command for a Python program."""
    return [sys.executable, *arguments]


def _look(cell: MatrixCell, pid: int) -> None:
    if cell.fault.strike is None or cell.is_struck or not cell.mark.exists():
        return
    cell.is_struck = True
    if cell.fault.strike == "driver":
        kill(pid)
    else:
        break_part(cell)
    cell.mark.with_name(f"{MARK_FILE}{GO_ON}").touch()


def break_part(cell: MatrixCell) -> None:
    """Take away the part of the framework that the fault strikes.

    Raises:
        NotStruck: it is not there.
    """
    part = cell.tools.part(cell.fault.name) if cell.tools is not None else None
    assert part is not None
    if part.process:
        struck = [pid for pid in cell.processes if part.process in command_line(pid, None)]
        if not struck:
            raise NotStruck(f"no process of this run has {part.process!r} in its command line")
        for pid in struck:
            kill(pid)
    for name in filter(None, (part.file, part.lock)):
        files = [path for path in cell.folder.rglob(name) if path.is_file()]
        if not files:
            raise NotStruck(f"no file of this run is named {name!r}")
        for path in files:
            if part.file:
                path.unlink()
            else:
                _lock(path)


def end(cell: MatrixCell, wait_seconds: float = 0.0) -> None:
    """End every process of the cell, after `wait_seconds` in which they may end by themselves.

    The guardian of a killed `tuneoff compare` is the last one: it removes what that leaves outside the cell's folder.
    """
    deadline = time.monotonic() + wait_seconds
    while time.monotonic() < deadline and cell.processes:
        time.sleep(0.05)
    end_guarded(lambda: cell.processes)


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
