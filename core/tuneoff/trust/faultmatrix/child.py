"""A program under a limit of time, in a session of its own, that may be struck meanwhile; nothing of it is left afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuneoff.base.processes import MARK, command_line, end_all, in_session, kill, last_words, session_of, with_mark
from tuneoff.run.supervisor.coordinator import import_path
from tuneoff.run.supervisor.guardian import end_guarded
from tuneoff.run.trial.limits import thread_environment

CELL = "TUNEOFF_FAULTS_CELL"  # environment variable with the cell's name, in every process of it
OUTPUT = "output.txt"
_LOOK_SECONDS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a program ended: its exit code (negative: a signal), or None where it had to be killed at the limit."""

    code: int | None
    seconds: float
    words: str  # the last line of its output


def run_child(
    command: Sequence[str],
    folder: Path,
    cell: str,
    seconds: float,
    look: Callable[[int], None] = lambda pid: None,
    stopping: threading.Event | None = None,
    *,
    wrapped: bool = False,
) -> Ended:
    """Run a program in `folder` until its end, its limit, or until `stopping` is set; `look(pid)` is called meanwhile.

    `wrapped`: the command is one that prepares something for the program and cleans up after it, so at the limit only what is
    below it is killed, and it gets a moment to end by itself.
    """
    everything = {
        **{name: value for name, value in os.environ.items() if name != MARK},
        **thread_environment(1),
        CELL: cell,
        "TMPDIR": str(temporary_folder(folder)),
        "HOME": str(folder),
        "PYTHONUNBUFFERED": "1",
        "PYTHONHASHSEED": "0",
        **import_path(),
    }
    started = time.monotonic()
    with (folder / OUTPUT).open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=everything,
        )
    code: int | None = None
    try:
        while (code := process.poll()) is None and time.monotonic() - started < seconds:
            if stopping is not None and stopping.is_set():
                break
            look(process.pid)
            time.sleep(_LOOK_SECONDS)
        took = time.monotonic() - started
        if code is None and wrapped:
            end_all(lambda: [pid for pid in of_cell(cell) if pid != process.pid])
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10.0)
    finally:
        if process.poll() is None:
            kill(process.pid)
        process.wait()
    return Ended(code=code, seconds=took, words=last_words(folder / OUTPUT, otherwise=""))


def cell_prefix(pid: int) -> str:
    """Return what the names of all cells of one command begin with; `pid`: its process."""
    return f"faults-{pid}-"


def end_cell(cell: str, wait_seconds: float = 0.0, *, is_prefix: bool = False) -> None:
    """End every process of a cell, after `wait_seconds` in which they may end by themselves; `is_prefix`: of all such cells.

    The guardian of a killed `tuneoff compare` is the last one: it removes what that leaves outside the cell's folder.
    """
    _wait_for(cell, wait_seconds, is_prefix)
    end_guarded(lambda: of_cell(cell, is_prefix=is_prefix))


def of_cell(cell: str, *, is_prefix: bool = False) -> list[int]:
    """Return the processes of a cell, and those of its sessions; `is_prefix`: of all cells with names that begin so."""
    marked = with_mark(CELL, cell, is_prefix=is_prefix)
    sessions = {session for pid in marked if (session := session_of(pid)) not in (0, os.getsid(0))}
    return sorted({*marked, *(pid for session in sessions for pid in in_session(session))})


def temporary_folder(folder: Path) -> Path:
    """Return the folder for temporary files of a cell, made."""
    path = folder / "t"
    path.mkdir(exist_ok=True)
    return path


def kill_parts(cell: str, words: str) -> int:
    """SIGKILL the processes of a cell whose command line has these words; return how many there were."""
    found = [pid for pid in of_cell(cell) if words in command_line(pid, None)]
    for pid in found:
        kill(pid, signal.SIGKILL)
    return len(found)


def python(*arguments: str) -> list[str]:
    """Return the command for a Python program."""
    return [sys.executable, *arguments]


def _wait_for(cell: str, seconds: float, is_prefix: bool) -> None:
    """Wait until a cell has no process, at most so long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and of_cell(cell, is_prefix=is_prefix):
        time.sleep(0.05)
