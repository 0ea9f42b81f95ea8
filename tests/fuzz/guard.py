"""An audit hook that forbids what no reader of damaged files may do: write outside its folders, kill strangers, use the network.

Nor may it read what lies beside the file of breaches: links of a case lead there.

Each breach is appended to a file and refused with an error, so that nothing of the machine is lost. Standard library only:
`site/sitecustomize.py` loads it into every Python process of a case that is run for real.
"""

from __future__ import annotations

import _posixsubprocess
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

VARIABLE = "TUNEOFF_FUZZ_GUARD"  # what a guarded process inherits: file of breaches, moment of the start, allowed folders
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
ALWAYS = ("/dev/null", "/dev/tty", "/dev/shm", "/proc/self", "/sys/fs/cgroup")
NETWORK = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.sendto", "socket.sendmsg")
AF_UNIX = 1
STARTS = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork", "os.forkpty")
CHANGES: dict[str, tuple[int, ...]] = {  # the places of the paths among an event's arguments
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.rmdir": (0,),
    "os.rename": (0, 1),
    "os.link": (1,),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "shutil.rmtree": (0,),
    "shutil.move": (0, 1),
    "shutil.copyfile": (1,),
}
OF_LINKS = ("os.remove", "os.rename")  # change a link itself, and not what it leads to
WITHOUT_DESCRIPTOR = ("os.truncate", "shutil.move", "shutil.copyfile")

Check = Callable[[str, tuple[Any, ...]], str | None]  # event and its arguments -> what is wrong


class Refused(PermissionError):
    """What a guarded process must not do."""


def setting(breaches: Path, folders: Sequence[Path]) -> str:
    """Return the value of `VARIABLE` for processes that may write into these folders alone."""
    return os.pathsep.join([str(breaches), str(_now()), *(str(folder) for folder in folders)])


def install(value: str, *, may_start_processes: bool = True) -> None:
    """Guard this process from now on; there is no way back."""
    breaches, since, *folders = value.split(os.pathsep)
    allowed = [os.path.realpath(folder) for folder in folders]
    log = os.open(breaches, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
    check = _checker(allowed, os.path.realpath(os.path.dirname(breaches)), int(since), may_start_processes)

    def refuse(problem: str) -> NoReturn:
        os.write(log, f"{problem}\n".encode(errors="backslashreplace"))
        raise Refused(1, f"the guard of the fuzzing refuses it: {problem}")

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        problem = check(event, arguments)
        if problem is not None:
            refuse(problem)

    if not may_start_processes:  # how multiprocessing starts a fresh interpreter: no event tells of it
        _posixsubprocess.fork_exec = lambda *arguments: refuse(f"starts a process: {arguments[0]}")
    sys.addaudithook(hook)


def _checker(
    allowed: list[str], mine: str, since: int, may_start_processes: bool
) -> Callable[[str, tuple[Any, ...]], str | None]:
    def check(event: str, arguments: tuple[Any, ...]) -> str | None:
        if event == "open":
            path, _, flags = arguments
            if flags & WRITING and not _is_inside(path, allowed):
                return f"writes {path!r}"
            return f"reads {path!r}" if not isinstance(path, int) and _is_inside(path, [mine], always=()) else None
        if event in CHANGES:
            named = [arguments[place] for place in CHANGES[event]]
            outside = [path for path in named if not _is_inside(_entry(path) if event in OF_LINKS else path, allowed)]
            if not outside or (event not in WITHOUT_DESCRIPTOR and _is_below(outside[0], arguments[-1])):
                return None
            return f"{event} {outside[0]!r}"
        if event in ("os.kill", "os.killpg"):
            return None if arguments[1] == 0 or _is_young(arguments[0], since) else f"{event} {arguments[0]}: a stranger"
        if event == "socket.connect":
            address = arguments[1]
            return f"connects to {address!r}" if isinstance(address, tuple) else None
        if event in ("socket.sendto", "socket.sendmsg") and arguments[0].family == AF_UNIX:
            return None
        if event in NETWORK:
            return f"{event} {arguments[-1]!r}"
        if event in STARTS and not may_start_processes:
            return f"starts a process: {event} {arguments[0] if arguments else ''}"
        return None

    return check


def _is_inside(path: Any, allowed: list[str], always: Sequence[str] = ALWAYS) -> bool:
    if isinstance(path, int):
        return True
    try:
        real = os.path.realpath(os.fsdecode(path))
    except (OSError, ValueError, TypeError):
        return bool(always)  # no path that can be opened
    return any(real == folder or real.startswith(f"{folder}/") for folder in (*allowed, *always))


def _entry(path: Any) -> Any:
    """Return the folder in which an entry is changed."""
    return os.path.dirname(os.path.abspath(os.fsdecode(path))) if isinstance(path, str | bytes | os.PathLike) else path


def _is_below(path: Any, descriptor: Any) -> bool:
    """Tell whether a path is relative to a folder's descriptor: whoever opened that folder was checked then."""
    return isinstance(descriptor, int) and descriptor >= 0 and not os.path.isabs(os.fsdecode(path))


def _is_young(pid: int, since: int) -> bool:
    """Tell whether a process started after the guard's setting was made: only those can be the case's own."""
    if pid <= 1:
        return False
    try:
        with open(f"/proc/{pid}/stat") as file:
            text = file.read()
    except OSError:
        return True  # it is gone
    return int(text[text.rindex(")") + 2 :].split()[19]) >= since


def _now() -> int:
    """Return now in the kernel's ticks since its start, as /proc gives the start of processes."""
    with open("/proc/uptime") as file:
        return int(float(file.read().split()[0]) * os.sysconf("SC_CLK_TCK"))
