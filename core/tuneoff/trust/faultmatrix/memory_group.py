"""A control group that is to a plain program what a machine's memory is: a limit for all its processes together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from tuneoff.run.supervisor.cgroups import joining_problem
from tuneoff.run.supervisor.controllers import LIMIT_FILES, V1, places
from tuneoff.run.supervisor.guardian import Announce
from tuneoff.run.supervisor.leftovers import remove_cgroup

_SWAP = {V1: "memory.memsw.limit_in_bytes"}
_NAME = "tuneoff-"  # of a group, before its cell's


@contextlib.contextmanager
def memory_group(cell: str, limit_bytes: int, announce: Announce = lambda folder: None) -> Iterator[Path | None]:
    """Give a cell's group of that limit, announced, and removed at the end, or None: none can be made here."""
    place = places(["memory"])["memory"]
    folder = None if place.parent is None else place.parent / f"{_NAME}{cell}"
    if folder is not None:
        announce(folder)
    try:
        yield folder if folder is not None and _make(folder, place.version, limit_bytes) else None
    finally:
        if folder is not None:
            remove_cgroup(folder)


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
