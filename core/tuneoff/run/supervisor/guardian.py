"""Processes that outlive a killed tuneoff and remove what it leaves: `python -m tuneoff.run.supervisor.guardian KIND ARGUMENTS`.

Each reads standard input, a pipe from tuneoff, on which folders may be announced. A last `q` means a normal end; the end of the
pipe without it means that tuneoff died, or failed.

- `results FOLDER SINCE`: every process with the folder's mark is ended with all below it, its temporary folders are removed, and
  what the runs that it began (from the place SINCE of the list of executions) have made outside this machine is un-deployed.
- `command MARK SESSION`: every process with the command's mark is ended, and those of their sessions (but SESSION, the command's
  own), and the announced folders and control groups are removed, with all that runs in them announced for removal.

Imports only the standard library: it starts beside the first run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from tuneoff.base.layout import LEFTOVERS, OUTSIDE, RUNS
from tuneoff.base.private_folder import PrivateFolder
from tuneoff.base.processes import CLEANING_SECONDS, GUARDIAN, command_line, end_all, with_mark_and_sessions
from tuneoff.errors import InfrastructureError
from tuneoff.run.supervisor.leftovers import CGROUPS, RESULTS_MARK, clean_results, remove_cgroup

UNDEPLOY_SECONDS = 7.0  # in most cases within `CLEANING_SECONDS`
WATCHED = "TUNEOFF_WATCHED"  # environment variable with the command's mark, in every process that it starts

Announce = Callable[[Path], None]


class _GuardianProcess:
    """A guardian process, from tuneoff's side; as a context it is dismissed where the block ends well, and else it cleans."""

    def __init__(self, *arguments: str, environment: Mapping[str, str], pass_fds: Sequence[int] = ()) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", GUARDIAN, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # what kills tuneoff's own group must not kill it
            pass_fds=tuple(pass_fds),
            env=dict(environment),
        )

    def announce(self, folder: Path) -> None:
        """Name a folder that it is to remove; threads may do so at once, as so short a write is never torn."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # were the guardian itself killed
            os.write(self._process.stdin.fileno(), os.fsencode(folder.absolute()) + b"\0")

    def dismiss(self) -> None:
        """Tell it that all ended well, and wait for its end."""
        self._process.communicate(b"q")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.dismiss()
        else:
            self._process.communicate()  # it ends, and removes whatever is left


class Guardian(_GuardianProcess):
    """The guardian of a results folder."""

    def __init__(self, results: Path, lock: int | None = None, since: int = 0) -> None:
        """Start it for a results folder. `lock`: descriptor of the folder's lock, which it holds on to until it has cleaned,
        so that no command can resume beside it. `since`: how many executions were begun before."""
        unmarked = {name: value for name, value in os.environ.items() if name != RESULTS_MARK}
        fds = () if lock is None else (lock,)
        super().__init__("results", str(results.resolve()), str(since), environment=unmarked, pass_fds=fds)


@contextlib.contextmanager
def watching() -> Iterator[Announce]:
    """Have the block guarded and give what announces a temporary folder; what is left is removed unless the block ends well."""
    from tuneoff.run.supervisor.execution import import_path  # more than the standard library: only on tuneoff's side

    mark = f"{os.getpid()}-{os.urandom(4).hex()}"
    before = os.environ.pop(WATCHED, None)
    guardian = _GuardianProcess("command", mark, str(os.getsid(0)), environment={**os.environ, **import_path()})
    os.environ[WATCHED] = mark
    try:
        with guardian:
            yield guardian.announce
    finally:
        os.environ.pop(WATCHED, None)  # of another thread, where two make environments at once
        if before is not None:
            os.environ[WATCHED] = before


@contextlib.contextmanager
def temporary_folder(announce: Announce = lambda folder: None, prefix: str = "tuneoff-") -> Iterator[Path]:
    """Give a new temporary folder, announced, and remove it."""
    path = Path(tempfile.mkdtemp(prefix=prefix))
    if (folder := PrivateFolder.open(path)) is None:
        raise InfrastructureError(f"{path} must be this user's alone, but it was replaced; set TMPDIR to a folder of your own")
    with folder:
        announce(Path(folder.real))
        try:
            yield Path(folder.real)
        finally:
            folder.remove()


def end_guarded(find: Callable[[], Iterable[int]]) -> None:
    """SIGKILL whatever `find` returns with all below it, guardians last: they may first remove what the others leave."""
    end_all(find, spares=lambda pid: GUARDIAN in command_line(pid, None))
    deadline = time.monotonic() + CLEANING_SECONDS
    while time.monotonic() < deadline and any(True for _ in find()):
        time.sleep(0.05)
    end_all(find)


def main(kind: str, *arguments: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    text = b""
    while part := os.read(0, 65_536):
        text += part
        if text.rpartition(b"\0")[2] == b"q":  # an announced folder begins with a slash
            return
    if kind == "results":
        results = Path(arguments[0])
        clean_results(results)
        if any(results.glob(f"{RUNS}/*/*/{OUTSIDE}")):
            # more than the standard library: only now, and only here
            from tuneoff.run.supervisor.execution import undeploy_begun

            undeploy_begun(results, int(arguments[1]), UNDEPLOY_SECONDS)
        return
    end_guarded(lambda: with_mark_and_sessions(WATCHED, arguments[0], int(arguments[1])))
    for announced in text.split(b"\0")[:-1]:  # what follows the last one was never written to its end
        folder = Path(os.fsdecode(announced))
        if folder.is_relative_to(CGROUPS):
            remove_cgroup(folder)
        elif (temporary := PrivateFolder.open(folder)) is not None:
            with temporary:
                for results in {Path(path).parents[2] for path, _, files in os.walk(folder) if LEFTOVERS in files}:
                    clean_results(results)  # were a guardian killed too; `os.walk` follows no link
                temporary.remove()


if __name__ == "__main__":
    main(*sys.argv[1:])
