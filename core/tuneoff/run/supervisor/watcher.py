"""`python -m tuneoff.run.supervisor.watcher MARK`: outlives a killed command, and removes what that leaves.

It reads standard input, a pipe from tuneoff, on which the command announces each temporary folder that it makes. A last `q` means
a normal end; the end of the pipe without it means that the command was killed, or failed: then every process with its mark is
ended, and the folders are removed, with all that runs in them announced for removal.

Imports only the standard library: it starts beside the first run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tuneoff.base.processes import with_mark
from tuneoff.run.supervisor.death_watch import Outliving
from tuneoff.run.supervisor.guardian import end_guarded
from tuneoff.run.supervisor.leftovers import LEFTOVERS, clean_results

WATCHED = "TUNEOFF_WATCHED"  # environment variable with the command's mark, in every process that it starts

Announce = Callable[[Path], None]


class Watcher(Outliving):
    """A watching process, from tuneoff's side."""

    def __init__(self, module: str, *arguments: str) -> None:
        from tuneoff.run.supervisor.coordinator import import_path  # more than the standard library: only on tuneoff's side

        super().__init__(module, *arguments, environment={**os.environ, **import_path()})

    def announce(self, folder: Path) -> None:
        """Name a folder that it is to remove; threads may do so at once, as so short a write is never torn."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # were the watcher itself killed
            os.write(self._process.stdin.fileno(), os.fsencode(folder.absolute()) + b"\0")


@contextlib.contextmanager
def watching() -> Iterator[Announce]:
    """Have the block watched and give what announces a temporary folder; what is left is removed unless it ends well."""
    mark = f"{os.getpid()}-{os.urandom(4).hex()}"
    before = os.environ.pop(WATCHED, None)
    watcher = Watcher("tuneoff.run.supervisor.watcher", mark)
    os.environ[WATCHED] = mark
    try:
        yield watcher.announce
    except BaseException:
        watcher.let_clean()
        raise
    else:
        watcher.dismiss()
    finally:
        del os.environ[WATCHED]
        if before is not None:
            os.environ[WATCHED] = before


def read_to_end() -> bytes:
    """Return what came through the pipe when it has ended, whether tuneoff closed it or was killed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    text = b""
    while part := os.read(0, 65_536):
        text += part
    return text


def main(mark: str) -> None:
    *folders, last = read_to_end().split(b"\0")
    if last == b"q":
        return
    end_guarded(lambda: with_mark(WATCHED, mark))
    for folder in map(os.fsdecode, folders):
        for results in _results_in(folder):
            clean_results(results)  # were a guardian killed too
        shutil.rmtree(folder, ignore_errors=True)  # follows no link


def _results_in(folder: str) -> set[Path]:
    """Return the results folders below a folder whose runs have announced something; no link is followed."""
    return {Path(path).parents[2] for path, _, files in os.walk(folder) if LEFTOVERS in files}


if __name__ == "__main__":
    main(sys.argv[1])
