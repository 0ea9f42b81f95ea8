"""`python -m tuneoff.supervisor.guardian RESULTS`: outlives a killed tuneoff and ends its processes at once.

It reads standard input, a pipe from tuneoff. A byte `q` means a normal end; the end of the pipe without it means that
tuneoff died: then every process with the folder's mark is ended, its temporary folders are removed, and what its runs have made
outside this machine is un-deployed.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tuneoff.supervisor.leftovers import OUTSIDE, RESULTS_MARK, clean_results
from tuneoff.supervisor.outliving import Outliving
from tuneoff.supervisor.processes import command_line, end_all

MODULE = "tuneoff.supervisor.guardian"
CLEANING_SECONDS = 10.0  # how long the guardian of a killed command may take
UNDEPLOY_SECONDS = 7.0  # the next command waits for the guardian no longer than 10 s


class Guardian(Outliving):
    """The guardian process, from tuneoff's side."""

    def __init__(self, results: Path, lock: int | None = None) -> None:
        """Start it for a results folder. `lock`: descriptor of the folder's lock, which it holds on to until it has cleaned,
        so that no command can resume beside it."""
        unmarked = {name: value for name, value in os.environ.items() if name != RESULTS_MARK}
        super().__init__(MODULE, str(results.resolve()), environment=unmarked, pass_fds=() if lock is None else (lock,))


def end_guarded(find: Callable[[], Iterable[int]]) -> None:
    """SIGKILL whatever `find` returns, guardians last: they may first remove what the others leave."""
    end_all(lambda: [pid for pid in find() if MODULE not in command_line(pid, None)])
    deadline = time.monotonic() + CLEANING_SECONDS
    while time.monotonic() < deadline and any(True for _ in find()):
        time.sleep(0.05)
    end_all(find)


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    while byte := os.read(0, 1):
        if byte == b"q":
            return 0
    results = Path(arguments[0])
    clean_results(results)
    if any(results.glob(f"runs/*/*/{OUTSIDE}")):
        from tuneoff.supervisor.outside import undeploy_outside  # more than the standard library: only now, and only here

        undeploy_outside(results, UNDEPLOY_SECONDS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
