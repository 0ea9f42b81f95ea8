"""Call the command line where it can do no harm: in a guarded child with a limit of time and memory, its output kept.

A fork of this process, in which `tuneoff` is imported already, calls `main`. It leads its own session, and all that it leaves
behind is found and ended.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fuzz import guard
from tuneoff.base.processes import become_subreaper, children, command_line, rss_bytes

HERE = Path(__file__).parent
MOST_SECONDS = 10.0
MOST_BYTES = 1_000_000_000
LOOK_SECONDS = 0.02
LEAVE_SECONDS = 3.0  # how long what the command started may outlive it
UNCAUGHT = 99  # exit code of a call that let an exception through

Main = Callable[[Sequence[str]], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a case lives: `work` is its current folder, with all that it may change; the rest is ours."""

    work: Path
    temporary: Path
    home: Path
    kept: Path

    @classmethod
    def make(cls, folder: Path) -> Place:
        place = cls(work=folder / "work", temporary=folder / "tmp", home=folder / "home", kept=folder / "kept")
        for path in (place.work, place.temporary, place.home, place.kept):
            path.mkdir(parents=True)
        return place

    @classmethod
    @contextlib.contextmanager
    def of_case(cls, folder: Path) -> Iterator[Place]:
        """Give a new place in `folder`, which stays where the case failed, until the next case."""
        remove(folder)
        yield cls.make(folder)
        remove(folder)

    @property
    def environment(self) -> dict[str, str]:
        """What differs from this process's environment."""
        names = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TUNEOFF_DATA_DIR", "TUNEOFF_CACHE_DIR")
        setting = guard.setting(self.kept / "breaches", (self.work, self.temporary, self.home))
        search = os.pathsep.join(filter(None, (str(HERE / "site"), os.environ.get("PYTHONPATH"))))
        guarded = {
            guard.VARIABLE: setting,
            "PYTHONPATH": search,
            "PYTHONDONTWRITEBYTECODE": "1",
        }  # Python processes that it starts are guarded too
        return {**dict.fromkeys(names, str(self.home)), "TMPDIR": str(self.temporary), **guarded}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a call came to. `code` is None where it had to be ended; `breaches`: what it did and must not do."""

    argv: tuple[str, ...]
    code: int | None
    out: str
    err: str
    breaches: tuple[str, ...] = field(default=())
    faults: tuple[str, ...] = field(default=())  # tracebacks that `tuneoff` kept


def call_forked(
    main: Main, argv: Sequence[str], place: Place, *, seconds: float = MOST_SECONDS, may_start_processes: bool = False
) -> Answer:
    """Call `main` in a fork of this process."""

    def run() -> int:
        os.environ.update(place.environment)
        os.environ.pop("KUBECONFIG", None)
        tempfile.tempdir = None  # what pytest asked for
        sys.dont_write_bytecode = True
        os.chdir(place.work)
        guard.install(os.environ[guard.VARIABLE], may_start_processes=may_start_processes)
        try:
            return main(list(argv))
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 0

    become_subreaper()
    others = set(children(os.getpid()))
    pid = os.fork()
    if pid == 0:
        _be_child(run, place)
    return _watched(pid, argv, place, seconds, others)


def _be_child(run: Callable[[], int], place: Place) -> None:
    """Be the child: own session, own output, and no way back into the parent's code."""
    code = UNCAUGHT
    try:
        os.setsid()
        for descriptor, name in ((1, "out"), (2, "err")):
            file = os.open(place.kept / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, descriptor)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        code = run()
    finally:
        try:
            if code == UNCAUGHT:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def _watched(pid: int, argv: Sequence[str], place: Place, seconds: float, others: set[int]) -> Answer:
    """Wait for a child of ours, end it where it takes too much, and say what it came to; `others` are children from before it."""
    started = time.monotonic()
    breaches: list[str] = []
    peak = 0
    waited = 0.0
    descriptor = os.pidfd_open(pid)
    try:
        while not select.select([descriptor], [], [], LOOK_SECONDS)[0]:
            peak = max(peak, rss_bytes(pid))
            waited = _waited_seconds(pid)
            if time.monotonic() - started - waited > seconds:
                breaches.append(f"hung: not over after {seconds:g} s")
            elif peak > MOST_BYTES:
                breaches.append(f"memory: more than {MOST_BYTES / 1e6:g} MB")
            if breaches:
                os.kill(pid, signal.SIGKILL)
                break
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(descriptor)
    code = os.waitstatus_to_exitcode(status)
    if code < 0 and not breaches:
        breaches.append(f"died by signal {-code}")
    breaches += _leftovers(others)
    with contextlib.suppress(FileNotFoundError):
        breaches += (place.kept / "breaches").read_text(errors="replace").splitlines()
        (place.kept / "breaches").unlink()
    faults = []
    for path in place.temporary.glob("tuneoff-fault-*.txt"):
        faults.append(path.read_text(errors="replace"))
        path.unlink()
    return Answer(
        argv=tuple(argv),
        code=code if code >= 0 else None,
        out=(place.kept / "out").read_text(encoding="utf-8", errors="replace"),
        err=(place.kept / "err").read_text(encoding="utf-8", errors="replace"),
        breaches=tuple(breaches),
        faults=tuple(faults),
    )


def _waited_seconds(pid: int) -> float:
    """Return how long a process waited for a processor: a busy machine is not a hang."""
    try:
        with open(f"/proc/{pid}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _leftovers(others: set[int]) -> list[str]:
    """End and name what outlived the call; orphans are our children, for this process adopts them."""
    deadline = time.monotonic() + LEAVE_SECONDS
    while time.monotonic() < deadline:
        if not _orphans(others):
            return []
        time.sleep(LOOK_SECONDS)
    found = []
    for pid in _orphans(others):
        found.append(f"left a process: {command_line(pid)}")
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return found


def _orphans(others: set[int]) -> list[int]:
    """Return our living children that were not there before; those that ended are collected."""
    living = []
    for pid in set(children(os.getpid())) - others:
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                living.append(pid)
    return living


def remove(folder: Path) -> None:
    """Remove a case's folder, also what the case made unreadable."""
    for path, names, _ in os.walk(folder):
        for name in names:
            if not os.path.islink(os.path.join(path, name)):
                os.chmod(os.path.join(path, name), 0o700)
    shutil.rmtree(folder, ignore_errors=True)
