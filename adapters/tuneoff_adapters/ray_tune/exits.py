"""How trials ended, where Ray cannot say so: it knows no exit codes, and takes a cancelled trial for one that ran to its end.

An `os._exit(3)` looks to it like a SIGKILL. The notes are files in the run's folder, which all hosts share.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

FOLDER = "exits"


@contextlib.contextmanager
def noted_exit_code(run_dir: str, trial_id: str, attempt: int) -> Iterator[None]:
    """While a trial runs, leave a note when its process ends itself by `os._exit`; children that it forks leave none."""
    process, leave = os.getpid(), os._exit

    def note_and_leave(status: int) -> NoReturn:
        if os.getpid() == process:
            with contextlib.suppress(OSError):  # a full disk may not keep a process from ending
                path = _path(run_dir, trial_id, attempt)
                path.parent.mkdir(exist_ok=True)
                path.write_text(str(status))
        leave(status)

    os._exit = note_and_leave
    try:
        yield
    finally:
        os._exit = leave


def exit_code(run_dir: str | Path, trial_id: str, attempt: int) -> int | None:
    """Return the exit code that an attempt's process ended itself with, or None: a signal, or nobody knows."""
    try:
        return int(_path(run_dir, trial_id, attempt).read_text())
    except (OSError, ValueError):
        return None


def note_cancelled(run_dir: str, trial_id: str, attempt: int) -> None:
    """Leave a note that the budget ended a trial which had reported epochs."""
    path = _cancelled(run_dir, trial_id, attempt)
    path.parent.mkdir(exist_ok=True)
    path.touch()


def was_cancelled(run_dir: str | Path, trial_id: str, attempt: int) -> bool:
    """Tell whether the budget ended an attempt that had reported epochs."""
    return _cancelled(run_dir, trial_id, attempt).exists()


def _cancelled(run_dir: str | Path, trial_id: str, attempt: int) -> Path:
    return Path(run_dir) / FOLDER / f"{trial_id}.{attempt}.cancelled"


def _path(run_dir: str | Path, trial_id: str, attempt: int) -> Path:
    return Path(run_dir) / FOLDER / f"{trial_id}.{attempt}"
