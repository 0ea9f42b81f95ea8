"""The coordinator's process, from its supervisor's side: started in its own session, ended by a ladder."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from tuneoff.lifecycle.context import MARK
from tuneoff.supervisor.leftovers import RESULTS_MARK
from tuneoff.supervisor.prepare import Execution
from tuneoff.supervisor.processes import end_all, in_session, kill, with_mark
from tuneoff.trial.limits import thread_environment

LOG = "log.txt"


class Coordinator:
    """One `python -m tuneoff.lifecycle` process and everything that descends from it."""

    def __init__(self, execution: Execution, results: Path, temporary: Path, *, undeploy_seconds: float | None = None) -> None:
        self._execution_id = execution.execution_id
        command = [sys.executable, "-m", "tuneoff.lifecycle", str(execution.folder)]
        if undeploy_seconds is not None:  # only un-deploy, and say how long that may take
            command.append(f"--undeploy={undeploy_seconds:g}")
        environment = {
            **os.environ,
            **thread_environment(execution.spec.experiment.workers.threads),
            MARK: execution.execution_id,
            RESULTS_MARK: str(results.resolve()),
            "TMPDIR": str(temporary),
            "PYTHONHASHSEED": "0",
            "PYTHONUNBUFFERED": "1",
            **import_path(),
        }
        with (execution.folder / LOG).open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=environment
            )
        self.pid = self._process.pid
        self._pidfd = os.pidfd_open(self.pid)

    def wait(self, seconds: float) -> int | None:
        """Return the exit code if the process ends within `seconds`, else None."""
        select.select([self._pidfd], [], [], max(0.0, seconds))
        return self._process.poll()

    def ask_to_end(self) -> None:
        """SIGTERM: the coordinator un-deploys and ends."""
        kill(self.pid, signal.SIGTERM)

    def kill_all(self) -> list[int]:
        """SIGKILL the coordinator and whatever carries the run's mark or is in its session."""
        if self._process.poll() is None:
            kill(self.pid)
            self._process.wait()
        return end_all(self.descendants)

    def descendants(self) -> list[int]:
        """Return the living processes of the run but the coordinator itself."""
        found = {*with_mark(MARK, self._execution_id), *in_session(self.pid)}
        return sorted(found - {self.pid})

    def survivors(self, grace_seconds: float) -> list[int]:
        """Return the processes that outlive the coordinator by more than `grace_seconds`."""
        deadline = time.monotonic() + grace_seconds
        while (found := self.descendants()) and time.monotonic() < deadline:
            time.sleep(0.02)
        return found

    def close(self) -> None:
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


def import_path() -> dict[str, str]:
    """Let children import what this process can: the current folder only where the registry put it on the path for a plugin
    that is not installed, never by chance (a folder named like a package would shadow it)."""
    folder = os.getcwd()
    paths = [folder] if folder in sys.path else []
    paths += [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(paths)}
