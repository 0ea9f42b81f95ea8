"""What runs may leave behind, and how it is removed: by the run's end, by the guardian, or by the next command on the folder.

Imports only the standard library: the guardian must be light.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from tuneoff.files import read_regular_text
from tuneoff.supervisor.processes import all_pids, end_all, with_mark

RESULTS_MARK = "TUNEOFF_RESULTS"  # environment variable with the results folder, in every process of a run
LEFTOVERS = "leftovers.jsonl"
MOST_BYTES = 1_000_000  # of that list
OWN_NAME = r"tuneoff-[0-9a-f]{8}"  # of a run's temporary folder
TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")
CGROUPS = "/sys/fs/cgroup"
OUTSIDE = "outside.txt"  # in an execution's folder while something of it may be outside this machine; its text is for the user


def clean_execution(folder: Path) -> list[str]:
    """Remove the temporary folders and control groups that an execution remembered; return what could not be removed.

    What it has left outside this machine is among that: only its adapter's un-deploy can remove it.
    """
    return [*left_outside(folder), *_removed(remembered(folder))]


def _removed(found: Iterable[tuple[str, str]]) -> list[str]:
    """Remove what an execution remembered and return what is still there."""
    problems = []
    for kind, value in found:
        path = Path(value)
        if kind == "folder":
            shutil.rmtree(path, ignore_errors=True)
        elif kind == "cgroup":
            _remove_cgroup(path)
        if os.path.lexists(path):
            problems.append(f"{kind} {path}")
    return problems


def _is_temporary(kind: str, value: str, results: Path) -> bool:
    """Tell whether a path of a list that anyone may have written is a run's own: nothing else is ever removed by it.

    The results folder may lie in a temporary folder: neither what is in it nor what it is in is removed.
    """
    path = os.path.realpath(value)
    inner, outer = f"{path}/", f"{os.path.realpath(results)}/"
    if inner.startswith(outer) or outer.startswith(inner):
        return False
    if kind == "cgroup":
        return path.startswith(f"{CGROUPS}/")
    below = any(path.startswith(f"{os.path.realpath(root)}/") for root in (tempfile.gettempdir(), *TEMPORARY))
    return os.path.isabs(value) and (below or re.fullmatch(OWN_NAME, os.path.basename(path)) is not None)


def left_outside(folder: Path) -> list[str]:
    """Return one line on what an execution may have left outside this machine; none where its un-deploy came to its end."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return [" ".join(read_regular_text(folder / OUTSIDE).split()) or "something outside this machine"]
    return []


def remembered(folder: Path) -> list[tuple[str, str]]:
    """Return (kind, value) of each line of the execution's list; a torn last line was never made."""
    try:
        lines = read_regular_text(folder / LEFTOVERS, MOST_BYTES).splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    found = []
    for line in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
            entry = json.loads(line)
            kind, value = entry["kind"], entry["value"]
            if isinstance(kind, str) and isinstance(value, str) and value and "\0" not in value:
                found.append((kind, value))
    return found


def clean_results(results: Path) -> list[int]:
    """End every process that carries the folder's mark, clean its unfinished executions, and return the ended pids."""
    mark = str(results.resolve())
    killed = end_all(lambda: with_mark(RESULTS_MARK, mark))
    for list_file in results.glob(f"runs/*/*/{LEFTOVERS}"):
        if not os.path.lexists(list_file.parent / "run.json"):
            _removed(entry for entry in remembered(list_file.parent) if _is_temporary(*entry, results))
    return killed


def shared_memory() -> set[str]:
    """Return the names in /dev/shm that belong to this user."""
    names: set[str] = set()
    with contextlib.suppress(OSError), os.scandir("/dev/shm") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.stat(follow_symlinks=False).st_uid == os.getuid():
                    names.add(entry.name)
    return names


def unmapped(names: set[str]) -> set[str]:
    """Return the names in /dev/shm that no living process has mapped: what another program uses is not a leftover."""
    mapped: set[str] = set()
    for pid in all_pids() if names else ():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/maps") as file:
            text = file.read()
            mapped.update(name for name in names if f"/dev/shm/{name}" in text)
    return names - mapped


def _remove_cgroup(path: Path) -> None:
    for _ in range(50):
        if not path.exists():
            return
        with contextlib.suppress(OSError):
            path.rmdir()
            return
        time.sleep(0.02)  # the kernel frees a control group some moments after its last process ended
