"""What a run leaves on the machine: processes, ports, shared memory, files in the home and temporary folders.

Other programs work on the same machine. So processes count that descend from this one or carry the run's mark; listeners that
were seen to be the run's, or that such a process holds; shared memory and temporary files that nobody uses, the latter by
the names that frameworks give them: a conformance run has a temporary folder of its own, in which everything counts.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tuneoff.check.listeners import Listener, all_listeners, listeners_of
from tuneoff.lifecycle.context import MARK
from tuneoff.supervisor.leftovers import shared_memory, unmapped
from tuneoff.supervisor.processes import all_pids, children, command_line, is_alive, with_mark

TEMPORARY = ("ray*", "pymp-*", "optuna*", "syne*", "st-*", "torch*", "plasma*", "grpc*", "*.sock")
OWN_FOLDERS = (".ray", "ray_results", "syne-tune", ".optuna")  # of frameworks in the home folder: they are looked into
SETTLE_SECONDS = 2.0  # the kernel takes a moment, and what others make is taken up by its process

Kind = Literal["process", "port", "shared memory", "home file", "temporary file", "outside"]


@dataclass(frozen=True, slots=True)
class Left:
    """One thing that a run left."""

    kind: Kind
    text: str


@dataclass(frozen=True)
class Footprint:
    """What is there at a moment."""

    processes: frozenset[int]
    listeners: frozenset[Listener]
    memory: frozenset[str]
    home: frozenset[Path]
    temporary: frozenset[Path]

    @classmethod
    def now(cls, temporary: Sequence[Path] | None = None) -> Footprint:
        folders = {Path("/tmp"), Path(tempfile.gettempdir())} if temporary is None else temporary
        return cls(
            processes=frozenset(descendants(os.getpid())),
            listeners=frozenset(all_listeners()),
            memory=frozenset(shared_memory()),
            home=frozenset(_entries([Path.home(), *(Path.home() / name for name in OWN_FOLDERS)])),
            temporary=frozenset(path for path in _entries(folders) if _is_suspect(path)),
        )


def left_since(
    before: Footprint, execution_id: str, seen: Iterable[Listener] = (), temporary: Sequence[Path] | None = None
) -> list[Left]:
    """Return what is new, is of the run, and still there after a moment. `seen`: listeners of the run while it was there."""
    deadline = time.monotonic() + SETTLE_SECONDS
    known = frozenset(seen)
    while (found := _left(before, execution_id, known, temporary)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def _left(before: Footprint, execution_id: str, seen: frozenset[Listener], temporary: Sequence[Path] | None) -> list[Left]:
    now = Footprint.now(temporary)
    processes = {pid for pid in now.processes - before.processes if is_alive(pid)} | set(with_mark(MARK, execution_id))
    listening = {pid for pid in processes if listeners_of([pid]) - before.listeners}  # its port tells more than its being there
    listeners = now.listeners & seen | (listeners_of(listening) - before.listeners)
    return [
        *(Left("process", f"process {pid}: {command_line(pid)}") for pid in sorted(processes - listening)),
        *(Left("port", f"{item.address}:{item.port}") for item in sorted(listeners, key=lambda item: item.port)),
        *(Left("shared memory", f"/dev/shm/{name}") for name in sorted(unmapped(set(now.memory - before.memory)))),
        *(Left("home file", str(path)) for path in sorted(now.home - before.home)),
        *(Left("temporary file", str(path)) for path in sorted(unused(now.temporary - before.temporary))),
    ]


def descendants(pid: int) -> list[int]:
    """Return all living and dead processes below a process; where it is a subreaper, also those that tried to detach."""
    found = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found


def unused(paths: Iterable[Path]) -> set[Path]:
    """Return the paths that no living process of this user has open, works in, or was given in its environment."""
    left = set(paths)
    for pid in all_pids() if left else ():
        mentioned = _mentioned(pid)
        left = {path for path in left if not any(os.fsencode(path) in text for text in mentioned)}
    return left


def _mentioned(pid: int) -> list[bytes]:
    texts = []
    for name in ("environ", "cmdline", "maps"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:
            texts.append(file.read())
    with contextlib.suppress(OSError):
        texts.append(os.fsencode(os.readlink(f"/proc/{pid}/cwd")))
        texts.extend(os.fsencode(os.readlink(entry.path)) for entry in os.scandir(f"/proc/{pid}/fd"))
    return texts


def _is_suspect(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return path.lstat().st_uid == os.getuid() and any(fnmatch.fnmatch(path.name, pattern) for pattern in TEMPORARY)
    return False


def _entries(folders: Iterable[Path]) -> list[Path]:
    return [path for folder in folders if folder.is_dir() for path in folder.iterdir()]
