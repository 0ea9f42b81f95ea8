"""A pod that trained well must not end before Katib's collector has begun: one that finds no training process fails the trial.

The kubelet starts the collector's container after the training container, on a node without its image after having pulled that.
So the pod's program looks for it where all containers of a pod share their process numbers, as the collector does itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

MOST_SECONDS = 30.0  # that a pod waits at its end
SETTLED_SECONDS = 1.0  # age of a collector that has surely listed the processes, which is the first that it does
LOOK_SECONDS = 0.1
KATIB_VARIABLE = "KATIB_TRIAL_NAME"  # in the environment of what Katib's webhook has wrapped

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


def wait_for_collector(
    katib_trial: str, shell: int | None = None, proc: Path = _PROC, sleep: Callable[[float], None] = time.sleep
) -> float:
    """Wait until the collector of the trial has listed the pod's processes; return how many seconds that took.

    Returns at once where this is not a container of a pod with a collector. `shell`: the process that started this one.
    """
    shell = os.getppid() if shell is None else shell
    waited = 0.0
    if not is_beside_others(shell, proc):
        return waited
    while waited < MOST_SECONDS and not _has_begun(katib_trial, shell, proc):
        sleep(LOOK_SECONDS)
        waited += LOOK_SECONDS
    return waited


def is_beside_others(shell: int, proc: Path = _PROC) -> bool:
    """Tell whether the shell was started by Katib in a container whose pod shares its process numbers.

    Then it has no parent (that is outside), and is not the first process: that is the pod's own.
    """
    return KATIB_VARIABLE in os.environ and shell > 1 and _parent(proc / str(shell)) == 0


def _has_begun(katib_trial: str, shell: int, proc: Path) -> bool:
    """Tell whether there is another container's first process with the trial among its arguments, and for long enough."""
    for folder in _processes(proc):
        if int(folder.name) in (1, shell) or _parent(folder) != 0:
            continue
        if katib_trial in _arguments(folder):
            return _age_seconds(folder, proc) >= SETTLED_SECONDS
    return False


def _processes(proc: Path) -> Iterator[Path]:
    return (proc / name for name in os.listdir(proc) if name.isdecimal())


def _arguments(folder: Path) -> list[str]:
    try:
        return (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:  # it ended meanwhile
        return []


def _fields(folder: Path) -> list[str]:
    """Return the fields of `stat` after the program's name, the third first; none where the process has ended."""
    try:
        return (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _parent(folder: Path) -> int | None:
    fields = _fields(folder)
    return int(fields[1]) if fields else None


def _age_seconds(folder: Path, proc: Path) -> float:
    fields = _fields(folder)
    up_seconds = float((proc / "uptime").read_text().split()[0])
    return up_seconds - int(fields[19]) / _TICKS if fields else 0.0
