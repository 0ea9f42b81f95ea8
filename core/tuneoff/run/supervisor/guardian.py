"""`python -m tuneoff.run.supervisor.guardian RESULTS SINCE`: outlives a killed tuneoff and ends its processes at once.

It reads standard input, a pipe from tuneoff. A byte `q` means a normal end; the end of the pipe without it means that
tuneoff died: then every process with the folder's mark is ended with all below it, its temporary folders are removed, and what
the runs that it began (from the place SINCE of the list of executions) have made outside this machine is un-deployed.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tuneoff.base.processes import CLEANING_SECONDS, GUARDIAN, command_line, end_all
from tuneoff.run.supervisor.death_watch import Outliving
from tuneoff.run.supervisor.leftovers import OUTSIDE, RESULTS_MARK, clean_results

UNDEPLOY_SECONDS = 7.0  # in most cases within `CLEANING_SECONDS`


class Guardian(Outliving):
    """The guardian process, from tuneoff's side."""

    def __init__(self, results: Path, lock: int | None = None, since: int = 0) -> None:
        """Start it for a results folder. `lock`: descriptor of the folder's lock, which it holds on to until it has cleaned,
        so that no command can resume beside it. `since`: how many executions were begun before."""
        unmarked = {name: value for name, value in os.environ.items() if name != RESULTS_MARK}
        fds = () if lock is None else (lock,)
        super().__init__(GUARDIAN, str(results.resolve()), str(since), environment=unmarked, pass_fds=fds)


def end_guarded(find: Callable[[], Iterable[int]]) -> None:
    """SIGKILL whatever `find` returns with all below it, guardians last: they may first remove what the others leave."""
    end_all(find, spares=lambda pid: GUARDIAN in command_line(pid, None))
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
        from tuneoff.run.supervisor.remote_leftovers import (
            undeploy_begun,  # more than the standard library: only now, and only here
        )

        undeploy_begun(results, int(arguments[1]), UNDEPLOY_SECONDS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
