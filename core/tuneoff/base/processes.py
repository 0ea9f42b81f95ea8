"""Find and end processes by what they carry: an environment mark, a session, a parent, open files. Read from Linux's /proc."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tuneoff.base.terminal import shown_line

_PR_SET_CHILD_SUBREAPER = 36
_WORDS = 200  # characters of a log's last line
_TAIL_BYTES = 65_536  # of a log, in which that line is looked for
_STAMP = re.compile(r"^\[[^\]]*\]\s+(\([^)]*\)\s+)?\S+:\d+:\s*")  # Ray's: time, processes, who, file and line
_TRACKER_SECONDS = 1.0  # in which a resource tracker ends of which all users have ended
_STOP_SECONDS = 0.2  # in which a process stops that is not in the middle of a slow system call
_MOST_PRINTED = 1_000_000  # bytes of a command's output that are kept, from its end
_OF_CODE = (  # signals that a process meets by what it does itself: faults, its timers, its CPU time, a pipe that nobody reads
    *(signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGSYS, signal.SIGTRAP),
    *(signal.SIGALRM, signal.SIGPROF, signal.SIGVTALRM, signal.SIGXCPU, signal.SIGPIPE),
)
PAGE = os.sysconf("SC_PAGE_SIZE")
MARK = "TUNEOFF_RUN_ID"  # environment variable with the execution id in every process of a run
COORDINATOR = "tuneoff.run.lifecycle"  # the module that the process of a run's coordinator runs
GUARDIAN = "tuneoff.run.supervisor.guardian"  # the module that a guardian's process runs
CLEANING_SECONDS = 10.0  # how long the next command waits for the guardian of a killed one, which may take longer


class CommandEnd(NamedTuple):
    """How a command ended: its exit code (negative: a signal), and the last of what it printed."""

    code: int
    output: str
    errors: str


def become_subreaper() -> bool:
    """Adopt orphaned descendants of this process (survives exec, not fork); False where the platform has no such call."""
    return sys.platform == "linux" and int(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) == 0


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def with_mark(variable: str, value: str, *, is_prefix: bool = False) -> list[int]:
    """Return the living processes whose environment at their start had `variable` = `value`; zombies are left out.

    `is_prefix`: what follows `value` there may be anything.
    """
    wanted = os.fsencode(f"\0{variable}={value}{'' if is_prefix else chr(0)}")
    pids = []
    for pid in all_pids():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if wanted in b"\0" + file.read() + b"\0" and pid != os.getpid():
                    pids.append(pid)
        except OSError:  # it ended meanwhile, or belongs to someone else
            continue
    return pids


def with_mark_and_sessions(variable: str, value: str, besides: int = 0) -> list[int]:
    """Return the processes that `with_mark` finds, and all of their sessions but this process's and `besides`."""
    marked = with_mark(variable, value)
    sessions = {session_of(pid) for pid in marked} - {0, os.getsid(0), besides}
    return sorted({*marked, *(pid for session in sessions for pid in in_session(session))})


def in_session(session: int) -> list[int]:
    """Return the living processes of a session; zombies are left out.

    Raises:
        ValueError: it is 0, which many processes have that are nobody's to end.
    """
    return _of_leader(session, 3)


def in_group(group: int) -> list[int]:
    """Return the living processes of a process group, and raise as `in_session` does."""
    return _of_leader(group, 2)


def _of_leader(pid: int, place: int) -> list[int]:
    _must_be_pid(pid)
    return [other for other in all_pids() if (fields := stat_fields(other)) and fields[0] != "Z" and int(fields[place]) == pid]


def session_of(pid: int) -> int:
    """Return the session of a process; 0: it is gone."""
    with contextlib.suppress(OSError):
        return os.getsid(pid)
    return 0


def stat_fields(pid: int | str) -> list[str] | None:
    """Return the fields of /proc/<pid>/stat after the name (state, ppid, pgrp, session, ...), or None if there is no such pid."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # its name may be cut within a character
            text = file.read()
    except OSError:
        return None
    return text[text.rindex(b")") + 2 :].decode().split()


def is_alive(pid: int, started_ns: int | None = None) -> bool:
    """Tell whether a process runs (a zombie does not); `started_ns` guards against a pid that was used again."""
    fields = stat_fields(pid)
    if fields is None or fields[0] == "Z":
        return False
    return started_ns is None or _began(fields) == started_ns


def process_started_ns(pid: int | str = "self") -> int:
    """Return when the kernel started a process, in ns since boot, with suspended time (grain: 10 ms); now where it is gone."""
    fields = stat_fields(pid)
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) if fields is None else _began(fields)


def _began(fields: list[str]) -> int:
    return int(fields[19]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    """Return the direct children of a process."""
    pids: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                pids.extend(int(child) for child in file.read().split())
    return pids


def descendants(pid: int) -> list[int]:
    """Return the children of a process, their children, and so on; one whose own parent has ended is not found."""
    pids: list[int] = []
    to_visit = [pid]
    while to_visit:
        below = [child for child in children(to_visit.pop()) if child not in pids]
        pids.extend(below)
        to_visit.extend(below)
    return pids


def openers(path: str) -> list[int]:
    """Return the processes into which this one may look and that have a file open; `path` is absolute and without links."""
    pids = []
    for pid in all_pids():
        with contextlib.suppress(OSError):  # it ended meanwhile, or belongs to someone else
            if any(os.readlink(f"/proc/{pid}/fd/{name}") == path for name in os.listdir(f"/proc/{pid}/fd")):
                pids.append(pid)
    return pids


def rss_bytes(pid: int) -> int:
    """Return resident memory of a process, shared pages included; 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * PAGE
    except OSError:
        return 0


def pss_bytes(pid: int, proc: str = "/proc") -> int | None:
    """Return resident memory with shared pages divided among their users; slow (10 ms with torch), and the process waits."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"{proc}/{pid}/smaps_rollup", "rb") as file:
        for line in file:
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    return None  # no such file, or not ours to read


def has_more_memory(pid: int, limit_bytes: int) -> bool:
    """Tell whether a process and those below it have more resident memory than that.

    Shared pages count fully in RSS: a confirmation by PSS, which is slow, keeps a trial from paying for torch's code.
    """
    tree = (pid, *descendants(pid))
    if sum(map(rss_bytes, tree)) <= limit_bytes:
        return False
    return sum(rss_bytes(member) if (pss := pss_bytes(member)) is None else pss for member in tree) > limit_bytes


def command_line(pid: int, most: int | None = 120) -> str:
    """Return the command line of a process, at most so many characters of it (None: all), or "?": it is gone."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace").strip()[:most]
    except OSError:
        return "?"


def process_text(pid: int, module: str, whose: str) -> str:
    """Return the command line of a process; a fork of the process that runs `module` has that one's, and is told as `whose`."""
    is_fork = f" -m {module} " in f"{command_line(pid, None)} "
    return f"{command_line(pid)} (a fork of {whose})" if is_fork else command_line(pid)


def ended(code: int) -> str:
    """Return how a process has ended, in words that follow its name, by its exit code, which is negative for a signal."""
    if code >= 0:
        return f"ended with exit code {code}"
    return f"was ended by {signal.Signals(-code).name if -code in set(signal.Signals) else f'signal {-code}'}"


def is_own_end(exit_code: int | None) -> bool:
    """Tell whether an exit code says that the process's own code ended it; another signal, or None, may come from anywhere."""
    return exit_code is not None and (exit_code >= 0 or -exit_code in _OF_CODE)


def last_words(log: Path, otherwise: str = "it printed nothing") -> str:
    """Return the last line with a word in it that was written to a log, without time and place, or `otherwise`.

    One that is too long ends with a sentence, or else with a word and `...`.
    """
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return otherwise
    for line in reversed(text.split("\n")):
        said = _STAMP.sub("", " ".join(shown_line(line).split()))
        if any(character.isalpha() for character in said):
            return _cut(said)
    return otherwise


def _cut(text: str) -> str:
    if len(text) <= _WORDS:
        return text
    sentence, word = text.rfind(". ", 0, _WORDS + 1), text.rfind(" ", 0, _WORDS - 3)
    if sentence >= _WORDS // 3:
        return text[: sentence + 1]
    return f"{text[: word if word > 0 else _WORDS - 4]} ..."


def run_to_end(
    command: Sequence[str], seconds: float | None = None, *, environment: Mapping[str, str] | None = None, cwd: str | None = None
) -> CommandEnd:
    """Run a command until its process ends, and return how, with what was printed until then.

    It prints into files: what it leaves running may keep them open, and is not waited for, as it would be with pipes.

    Raises:
        OSError: it cannot be started.
        TimeoutError: it did not end within `seconds`, and was killed.
    """
    import subprocess  # `plan` needs none
    import tempfile

    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=environment, cwd=cwd)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"it took longer than {seconds:g} s") from error
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        return CommandEnd(process.returncode, _printed(output), _printed(errors))


def _printed(file: BinaryIO) -> str:
    """Return what was written to a file; of much the end."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - _MOST_PRINTED))
    return file.read(_MOST_PRINTED).decode(errors="replace")


def _must_be_pid(number: int) -> None:
    if number < 1:  # to the kernel 0 and below stand for many processes
        raise ValueError(f"a process or session must have a number >= 1, but got {number}")


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    _must_be_pid(pid)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def kill_from_outside() -> None:
    """SIGKILL this process by another one, as a machine does it: what a process sends to itself is charged to its own code."""
    import subprocess  # `plan` needs none

    subprocess.run(["sh", "-c", f"kill -KILL {os.getpid()}"])


def stop(pids: Iterable[int], deadline: float = math.inf) -> None:
    """SIGSTOP processes, and wait until no thread of them runs; not for one that the kernel keeps longer than a moment."""
    stopped = list(pids)
    for pid in stopped:
        kill(pid, signal.SIGSTOP)
    until = min(deadline, time.monotonic() + _STOP_SECONDS)
    while time.monotonic() < until and any(_runs(pid) for pid in stopped):
        time.sleep(0.001)


def kill_tree(pid: int) -> None:
    """SIGKILL a process, then all below it: first the one that would tell the death of another as its own fault.

    Resource trackers end by themselves once all others have.
    """
    below = descendants(pid)
    kill(pid)
    while below:  # again: one of them may have started another meanwhile
        for child in below:
            if not is_resource_tracker(child):
                kill(child)
        below = [child for parent in below for child in descendants(parent) if child not in below]


def is_resource_tracker(pid: int) -> bool:
    """Tell whether a process removes what others leave of named semaphores and shared memory: Python's, or one made after it."""
    return "resource_tracker import main" in command_line(pid, None)


def end_all(
    find: Callable[[], Iterable[int]], within_seconds: float = 5.0, spares: Callable[[int], bool] = lambda pid: False
) -> list[int]:
    """SIGKILL whatever `find` returns, with all below it, until there is nothing, and return all pids that were killed.

    All are stopped first: what is stopped starts no process more, tells no death of another as its own fault, and keeps the
    children that are found by their parent alone. Where `spares` says so, a process and what is below it is left alone. Nothing
    new is looked for after `within_seconds`; what was stopped by then is killed. Resource trackers come last, and have a moment
    to end by themselves.
    """
    killed: list[int] = []
    deadline = time.monotonic() + within_seconds
    tracked_until = math.inf  # from when on trackers are killed

    def spared(pid: int) -> bool:
        return spares(pid) or (time.monotonic() < tracked_until and is_resource_tracker(pid))

    while True:
        while pids := _stopped(find, spared, deadline):
            for pid in pids:
                kill(pid)
            killed.extend(pid for pid in pids if pid not in killed)
            if time.monotonic() >= deadline:
                return killed
            time.sleep(0.02)
        if not _with_below(find(), spares):
            return killed
        tracked_until = min(tracked_until, time.monotonic() + _TRACKER_SECONDS, deadline)
        time.sleep(0.02)


def _stopped(find: Callable[[], Iterable[int]], spares: Callable[[int], bool], deadline: float) -> list[int]:
    """Stop what `find` returns and all below it, until nothing is new or the deadline has passed, and return it."""
    stopped: list[int] = []
    while new := [pid for pid in _with_below(find(), spares) if pid not in stopped]:
        stop(new, deadline)
        stopped += new
        if time.monotonic() >= deadline:
            break
    return stopped


def _with_below(pids: Iterable[int], spares: Callable[[int], bool]) -> list[int]:
    """Return living processes with what is below them, without this one."""
    reached: list[int] = []
    to_visit = list(pids)
    while to_visit:
        pid = to_visit.pop()
        if pid not in reached and pid != os.getpid() and not spares(pid):
            reached.append(pid)
            to_visit.extend(children(pid))
    return [pid for pid in reached if is_alive(pid)]


def _runs(pid: int) -> bool:
    """Tell whether a thread of a process is neither stopped nor gone."""
    try:
        threads = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return False
    return any(fields[0] not in "TtZX" for thread in threads if (fields := stat_fields(thread)) is not None)
