"""What a run leaves on the machine: processes, ports, shared memory, temporary files, files in the home folder.

Other programs work on the same machine, so nothing counts only because it is new. Processes count that descend from this one or
carry the run's mark; listeners that were seen to be the run's, or that such a process holds; shared memory and temporary files
that the run's processes were seen to use, or that are named after the execution or one of its processes. In the folders that a
conformance run has for itself everything counts.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tuneoff.base.processes import COORDINATOR, MARK, all_pids, descendants, is_alive, process_text, with_mark
from tuneoff.run.supervisor.guardian import Announce, temporary_folder
from tuneoff.run.supervisor.leftovers import shared_memory, unmapped, used_memory

LOOKED_INTO = (".ray", "ray_results", "syne-tune", ".optuna")  # folders of frameworks in the home folder
LISTEN = "0A"
SHARED_MEMORY = "/dev/shm"
SETTLE_SECONDS = 2.0  # the kernel takes a moment
Kind = Literal["process", "port", "shared memory", "home file", "temporary file", "outside"]


@dataclass(frozen=True)
class ListeningSocket:
    """A listening socket; `inode` is its identity for as long as it is open."""

    inode: str
    address: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        address = ipaddress.ip_address(self.address)
        return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def all_listeners() -> set[ListeningSocket]:
    """Return every listening socket of this machine (of this network namespace)."""
    listeners = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:] if Path(table).exists() else ():
            fields = line.split()
            if fields[3] == LISTEN:
                address, _, port = fields[1].partition(":")
                words = [bytes.fromhex(address[start : start + 8])[::-1] for start in range(0, len(address), 8)]  # little-endian
                text = str(ipaddress.ip_address(b"".join(words)))
                listeners.add(ListeningSocket(inode=fields[9], address=text, port=int(port, 16)))
    return listeners


def listeners_of(pids: Iterable[int]) -> dict[ListeningSocket, int]:
    """Return the listening sockets that these processes hold, each with the last of them that holds it."""
    held: dict[str, int] = {}
    for pid in pids:
        try:
            for entry in os.scandir(f"/proc/{pid}/fd"):
                target = os.readlink(entry.path)
                if target.startswith("socket:["):
                    held[target[8:-1]] = pid
        except OSError:  # it ended meanwhile
            continue
    return {listener: held[listener.inode] for listener in all_listeners() if listener.inode in held}


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing that a run left."""

    kind: Kind
    text: str


@dataclass(slots=True)
class RunTraces:
    """What was seen of a run's processes while they were there."""

    pids: set[int] = field(default_factory=set)
    listeners: dict[ListeningSocket, int] = field(default_factory=dict)  # with the process that held it
    paths: set[str] = field(default_factory=set)  # what they used in folders that others use too

    def look(self, pids: Collection[int]) -> None:
        """Add what these processes hold now."""
        self.pids.update(pids)
        self.listeners.update(listeners_of(pids))
        memory = shared_memory()
        for pid in pids:
            self.paths.update(_used(pid), (f"{SHARED_MEMORY}/{name}" for name in used_memory(pid, memory)))

    def has(self, path: Path, execution_id: str) -> bool:
        """Tell whether a path can be tied to the run: by its use, or by its name."""
        numbers = {int(number) for number in re.findall(r"\d+", path.name)}
        return str(path) in self.paths or execution_id in path.name or bool(numbers & self.pids)

    def flagged(self, texts: Iterable[str]) -> Iterator[Leftover]:
        """Yield what the supervisor flagged that it had to end or to remove itself; a process that listened is a port.

        Shared memory and what is outside this machine are looked for by whoever made the run, and an `undeploy` that did not
        end is seen in the events.
        """
        for text in texts:
            kind, _, rest = text.partition(" ")
            if kind == "process":
                pid = int(rest.partition(":")[0])
                ports = [f"{item.address}:{item.port}" for item, holder in self.listeners.items() if holder == pid]
                yield Leftover("port", f"{', '.join(ports)} of {text}") if ports else Leftover("process", text)
            elif kind in ("folder", "cgroup"):
                yield Leftover("temporary file", text)


@dataclass(frozen=True)
class Footprint:
    """What is there at a moment."""

    processes: frozenset[int]
    listeners: frozenset[ListeningSocket]
    memory: frozenset[str]
    temporary: frozenset[Path]

    @classmethod
    def now(cls) -> Footprint:
        """Look."""
        return cls(
            processes=frozenset(descendants(os.getpid())),  # of a subreaper also those that tried to detach
            listeners=frozenset(all_listeners()),
            memory=frozenset(shared_memory()),
            temporary=frozenset(path for folder in shared_folders() if folder.is_dir() for path in folder.iterdir()),
        )


def left_since(before: Footprint, execution_id: str, seen: RunTraces) -> list[Leftover]:
    """Return what is new, is of the run, and still there after a moment."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while (leftovers := _left(before, execution_id, seen)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return leftovers


def _left(before: Footprint, execution_id: str, seen: RunTraces) -> list[Leftover]:
    now = Footprint.now()
    processes = {pid for pid in now.processes - before.processes if is_alive(pid)} | set(with_mark(MARK, execution_id))
    listening = {pid for pid in processes if listeners_of([pid]).keys() - before.listeners}  # a port tells more
    listeners = now.listeners & set(seen.listeners) | (listeners_of(listening).keys() - before.listeners)
    memory = {name for name in now.memory - before.memory if seen.has(Path(SHARED_MEMORY, name), execution_id)}
    files = [path for path in now.temporary - before.temporary if seen.has(path, execution_id)]
    return [
        *(
            Leftover("process", f"process {pid}: {process_text(pid, COORDINATOR, 'the coordinator')}")
            for pid in sorted(processes - listening)
        ),
        *(Leftover("port", f"{item.address}:{item.port}") for item in sorted(listeners, key=lambda item: item.port)),
        *(Leftover("shared memory", f"{SHARED_MEMORY}/{name}") for name in sorted(unmapped(memory))),
        *(Leftover("temporary file", str(path)) for path in sorted(unused(files))),
    ]


def unused(paths: Iterable[Path]) -> set[Path]:
    """Return the paths that no living process of this user has open, works in, or was given in its environment."""
    remaining = set(paths)
    for pid in all_pids() if remaining else ():
        mentioned = _mentioned(pid)
        remaining = {path for path in remaining if not any(os.fsencode(path) in text for text in mentioned)}
    return remaining


def shared_folders() -> set[Path]:
    """Return where temporary files of all programs lie."""
    return {Path("/tmp"), Path(tempfile.gettempdir())}


def _used(pid: int) -> Iterator[str]:
    """Yield what a process has open, mapped or works in, below the folders that others use too: the entry of that folder."""
    text = os.fsdecode(b"\0".join(_mentioned(pid, ("maps",))))
    for folder in map(str, shared_folders()):
        yield from re.findall(rf"{re.escape(folder)}/[^/\s\0]+", text)


def _mentioned(pid: int, names: Collection[str] = ("environ", "cmdline", "maps")) -> list[bytes]:
    texts = []
    for name in names:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:
            texts.append(file.read())
    with contextlib.suppress(OSError):
        texts.append(os.fsencode(os.readlink(f"/proc/{pid}/cwd")))
        texts.extend(os.fsencode(os.readlink(entry.path)) for entry in os.scandir(f"/proc/{pid}/fd"))
    return texts


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFolders:
    """A temporary folder, and a home folder with links to all that the real one has.

    `inside`: names of folders in the home folder that are no links, but have links to what the real ones have.
    """

    temporary: str
    home: str
    inside: tuple[str, ...] = ()

    def enter(self) -> None:
        """Let this process and all that it starts use them."""
        os.environ["TMPDIR"], os.environ["HOME"] = self.temporary, self.home
        tempfile.tempdir = None  # asked for anew

    def leftovers(self) -> list[Leftover]:
        """Return what was made in them and is used by nobody."""
        files = [Leftover("temporary file", str(path)) for path in sorted(unused(Path(self.temporary).iterdir()))]
        home = Path(self.home)
        links = {home / name for name in self.inside}
        home_files = [
            path for folder in (home, *links) for path in _own_entries(folder) if not path.is_symlink() and path not in links
        ]
        return files + [Leftover("home file", f"~/{path.relative_to(home)}") for path in sorted(home_files)]


@contextlib.contextmanager
def own_folders(announce: Announce = lambda folder: None) -> Iterator[OwnFolders]:
    """Make them, with short paths (sockets: 107 bytes), announce them, and remove them."""
    with temporary_folder(announce, "tk") as base:
        temporary, home = base / "t", base / "h"
        temporary.mkdir()
        home.mkdir()
        inside = []
        for path in _own_entries(Path.home()):
            if path.name in LOOKED_INTO and path.is_dir():
                inside.append(path.name)
                (home / path.name).mkdir()
                for entry in _own_entries(path):
                    (home / path.name / entry.name).symlink_to(entry)
            else:
                (home / path.name).symlink_to(path)
        yield OwnFolders(temporary=str(temporary), home=str(home), inside=tuple(inside))


def _own_entries(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return list(folder.iterdir())
    return []
