"""`python -m tuneoff.faultmatrix.watcher ROOT PREFIX`: outlives `tuneoff faults`, and removes what that leaves.

It reads standard input, a pipe from tuneoff. At the end of the pipe, whether tuneoff closed it or was killed, every process of
the cells whose names begin with PREFIX is ended, and their control groups and the folder ROOT are removed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from tuneoff.faultmatrix.child import cell_prefix, end_cell
from tuneoff.faultmatrix.memory import remove_groups
from tuneoff.supervisor.coordinator import import_path


class Watcher:
    """The watching process, from tuneoff's side."""

    def __init__(self, root: Path) -> None:
        """Start it for the cells of this process, whose files lie below `root`."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(root.resolve()), cell_prefix(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # what kills tuneoff's own group must not kill it
            env={**os.environ, **import_path()},
        )

    def let_clean(self) -> None:
        """Let it end and remove whatever is left, and wait for its end."""
        self._process.communicate()


def main(root: Path, prefix: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 1):
        pass
    end_cell(prefix, is_prefix=True)
    remove_groups(prefix)
    shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
