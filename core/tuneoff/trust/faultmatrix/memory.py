"""A control group that is to a plain program what a machine's memory is: a limit for all its processes together."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tuneoff.run.supervisor.cgroups import joining_problem
from tuneoff.run.supervisor.controllers import LIMIT_FILES, V1, places

_SWAP = {V1: "memory.memsw.limit_in_bytes"}
_REMOVE_SECONDS = 2.0
_NAME = "tuneoff-"  # of a group, before its cell's


@contextlib.contextmanager
def memory_group(cell: str, limit_bytes: int) -> Iterator[Path | None]:
    """Give a cell's group of that limit, removed at the end, or None: none can be made here."""
    place = places(["memory"])["memory"]
    folder = None if place.parent is None else place.parent / f"{_NAME}{cell}"
    try:
        yield folder if folder is not None and _make(folder, place.version, limit_bytes) else None
    finally:
        if folder is not None:
            _remove(folder)


def remove_groups(prefix: str) -> None:
    """Remove the groups of all cells whose names begin so; they have no process any more."""
    parent = places(["memory"])["memory"].parent
    for folder in [] if parent is None else parent.glob(f"{_NAME}{prefix}*"):
        _remove(folder)


def entering(folder: Path, command: Sequence[str]) -> list[str]:
    """Return a command whose process enters the group before it becomes `command`."""
    return ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(folder / "cgroup.procs"), *command]


def _make(folder: Path, version: str, limit_bytes: int) -> bool:
    try:
        folder.mkdir()
        (folder / LIMIT_FILES[version, "memory"]).write_text(str(limit_bytes))
    except OSError:
        return False
    with contextlib.suppress(OSError):  # absent without swap accounting
        (folder / _SWAP.get(version, "memory.swap.max")).write_text(str(limit_bytes) if version in _SWAP else "0")
    return joining_problem(folder) is None


def _remove(folder: Path) -> None:
    deadline = time.monotonic() + _REMOVE_SECONDS
    while folder.exists() and time.monotonic() < deadline:
        with contextlib.suppress(OSError):  # the kernel frees it some moments after its last process ended
            os.rmdir(folder)
            return
        time.sleep(0.02)
