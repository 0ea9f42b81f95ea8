"""Who works in a results folder, found out without touching its lock: even to try it could refuse a command that starts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tuneoff.base.files import read_regular
from tuneoff.base.processes import is_alive
from tuneoff.record.results_folder import LOCK


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The command that took the folder last. `pid` None: it came to its end, or never was."""

    pid: int | None
    works: bool  # it lives, on this machine, and has the lock open
    took_ns: int  # when it took the folder (wall clock); 0: not known


def holder(results: Path) -> Holder:
    """Return who took the folder last, and whether it still works there."""
    path = results / LOCK
    try:
        text = read_regular(path, 1000).decode(errors="replace").strip()
        found = os.lstat(path)
    except OSError:  # no lock: a folder that was copied without it
        return Holder(pid=None, works=False, took_ns=0)
    if not (text.isascii() and text.isdigit()):
        return Holder(pid=None, works=False, took_ns=found.st_mtime_ns)
    pid = int(text)
    return Holder(pid=pid, works=is_alive(pid) and _has_open(pid, found), took_ns=found.st_mtime_ns)


def _has_open(pid: int, file: os.stat_result) -> bool:
    """Tell whether a process has a file open; a process of somebody else, into which nobody may look, counts as one that has.

    A pid that was used again by another process is told apart so.
    """
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except PermissionError:
        return True
    except OSError:
        return False
    return any(_is_same(f"/proc/{pid}/fd/{name}", file) for name in descriptors)


def _is_same(path: str, file: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), file)
    except OSError:  # closed meanwhile
        return False
