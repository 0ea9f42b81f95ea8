"""What runs may leave behind, and how it is removed: by the run's end, by the guardian, or by the next command on the folder.

Imports only the standard library: the guardian must be light.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tuneoff.base.files import read_regular_text
from tuneoff.base.layout import END, LEFTOVERS, OUTSIDE, RUNS
from tuneoff.base.private_folder import PrivateFolder
from tuneoff.base.processes import all_pids, end_all, with_mark

RESULTS_MARK = "TUNEOFF_RESULTS"  # environment variable with the results folder, in every process of a run
MOST_BYTES = 1_000_000  # of that list
MOST_TEXT = 10_000  # bytes of `OUTSIDE`
OWN_NAME = r"tuneoff-[0-9a-f]{8}([0-9a-f]{8})?"  # of a run's temporary folder; the longer one is on all hosts of a run
TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")
CGROUPS = "/sys/fs/cgroup"
_MOST_LOOKS = 10  # at a name in /dev/shm that no process of the run uses: it is another program's


def clean_execution(folder: Path) -> list[str]:
    """Remove the temporary folders and control groups that an execution remembered; return what could not be removed.

    What it has left outside this machine is among that: only its adapter's un-deploy can remove it. What came to a folder's name
    later is not its.
    """
    problems = left_outside(folder)
    for kind, value in reversed(remembered(folder)):  # a group is emptied of those below it, which came later
        path = Path(value)
        if kind == "folder":
            if (opened := PrivateFolder.open(path)) is not None:
                with opened:
                    opened.remove()
                    problems += [f"{kind} {path}"] if opened.is_there else []
        elif kind == "cgroup":
            remove_cgroup(path)
            problems += [f"{kind} {path}"] if os.path.lexists(path) else []
    return problems


def left_outside(folder: Path) -> list[str]:
    """Return one line on what an execution may have left outside this machine; none where its un-deploy came to its end."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return [" ".join(read_regular_text(folder / OUTSIDE, MOST_TEXT).split()) or "something outside this machine"]
    return []


def remembered(folder: Path) -> list[tuple[str, str]]:
    """Return (kind, value) of each line of the execution's list; a torn last line was never made."""
    try:
        lines = read_regular_text(folder / LEFTOVERS, MOST_BYTES).splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    entries = []
    for line in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
            entry = json.loads(line)
            kind, value = entry["kind"], entry["value"]
            if isinstance(kind, str) and isinstance(value, str) and value and "\0" not in value:
                entries.append((kind, value))
    return entries


def clean_results(results: Path) -> list[int]:
    """End every process of the folder's runs, clean its unfinished executions, and return the ended pids.

    A process is one of them that carries the folder's mark, that is below such a one, or that has lost its mark (Ray's agents
    write their title over it) and writes below the temporary folder of an unfinished execution. `results`: without links, as
    in the mark.
    """
    mark = str(results)
    unfinished = [path.parent for path in results.glob(f"{RUNS}/*/*/{LEFTOVERS}") if not os.path.lexists(path.parent / END)]
    entries = [(kind, value, folder) for folder in unfinished for kind, value in remembered(folder)]
    with contextlib.ExitStack() as held:
        folders: list[PrivateFolder] = []
        for kind, value, of in entries:  # anyone may have written the list: only what tuneoff makes, by place, name and owner
            is_named = kind == "folder" and re.fullmatch(OWN_NAME, os.path.basename(value)) is not None
            if is_named and (opened := PrivateFolder.open(Path(value))) is not None:
                held.enter_context(opened)
                holds_results = f"{of}/".startswith(f"{opened.real}/")  # a results folder may have such a name
                if opened.is_in((tempfile.gettempdir(), *TEMPORARY)) and not holds_results:
                    folders.append(opened)
        others = set(with_mark(RESULTS_MARK, "", is_prefix=True)) - set(with_mark(RESULTS_MARK, mark)) if folders else set()
        for folder in folders.copy():
            users = {pid for name in (str(folder.path), folder.real) for pid in with_mark("TMPDIR", name)} | folder.writers()
            if others & users:  # these results are a copy: the folder is that of a run of others, or one writes there
                folders.remove(folder)
        killed = end_all(lambda: set(with_mark(RESULTS_MARK, mark)).union(*(folder.writers() for folder in folders)))
        for folder in folders:
            folder.remove()
    for kind, value, of in reversed(entries):  # of control groups too only what tuneoff makes for that execution
        parent, name = os.path.split(value)
        is_named = re.fullmatch(rf"tuneoff-{re.escape(of.name)}-\d+", name) is not None
        if kind == "cgroup" and is_named and os.path.realpath(parent).startswith(f"{CGROUPS}/"):
            remove_cgroup(Path(value))
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


class RunMemory:
    """What of /dev/shm is a run's: its processes were seen to use it, or it is named after one of them or after the execution.

    Other programs of this user make some meanwhile, which is none of the run's.
    """

    def __init__(self, execution_id: str) -> None:
        """Look before the run starts."""
        self._execution_id, self._before = execution_id, shared_memory()
        self._looks: Counter[str] = Counter()
        self._pids: set[int] = set()
        self._used: set[str] = set()

    def look(self, pids: Callable[[], Iterable[int]]) -> None:
        """Look who uses what is new; `pids`: of the run."""
        new = [name for name in shared_memory() - self._before - self._used if self._looks[name] < _MOST_LOOKS]
        if not new:
            return
        self._looks.update(new)
        for pid in pids():
            self._pids.add(pid)
            self._used.update(used_memory(pid, new))

    def left(self) -> list[str]:
        """Return the names of what is the run's and still there, and in no use."""
        left = set()
        for name in shared_memory() - self._before:
            numbers = {int(word) for word in re.split(r"[^0-9A-Za-z]", name) if word.isdecimal()}  # no digits of a random word
            if name in self._used or self._execution_id in name or numbers & self._pids:
                left.add(name)
        return sorted(unmapped(left))


def used_memory(pid: int, names: Iterable[str]) -> Iterator[str]:
    """Yield those names in /dev/shm that a process has mapped or open."""
    mapped, opened = _mapped(pid), set()
    with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                opened.add(os.readlink(entry.path))
    yield from (name for name in names if _inode(name) in mapped or f"/dev/shm/{name}" in opened)


def _mapped(pid: int) -> set[str]:
    """Return the inodes in /dev/shm that a process has mapped: a semaphore's maker maps it by a name that it then removes."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", errors="replace") as file:
        return set(re.findall(r" (\d+) +/dev/shm/", file.read()))
    return set()


def _inode(name: str) -> str:
    with contextlib.suppress(OSError):
        return str(os.lstat(f"/dev/shm/{name}").st_ino)
    return ""


def unmapped(names: set[str]) -> set[str]:
    """Return the names in /dev/shm that no living process has mapped: what another program uses is not a leftover."""
    mapped = set[str]().union(*(_mapped(pid) for pid in all_pids() if names))
    return {name for name in names if _inode(name) not in mapped}


def remove_cgroup(path: Path) -> None:
    """Remove an empty control group; what cannot be removed is left."""
    for _ in range(100):
        if not path.exists():
            return
        with contextlib.suppress(OSError):
            path.rmdir()
            return
        time.sleep(0.02)  # the kernel frees a control group some moments after its last process ended
