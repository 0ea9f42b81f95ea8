"""The coordinator's process, from its supervisor's side: started in its own session, ended by a ladder."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import IO, NamedTuple

from tuneoff.base.files import open_to_change
from tuneoff.base.process_limits import as_parent, thread_environment
from tuneoff.base.processes import MARK, children, descendants, end_all, in_session, is_alive, kill, session_of, with_mark
from tuneoff.base.tracebacks import LOG
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.run.supervisor.leftovers import RESULTS_MARK
from tuneoff.run.supervisor.prepare import Execution, stored


class Undeploy(NamedTuple):
    """That a coordinator is only to un-deploy: its trials' context, as no file is to be believed, and how long it may take."""

    context: TrialContext
    seconds: float


_COMPILES_ANEW = "PYTHONDONTWRITEBYTECODE"  # each process would compile its imports: overhead of the machine's settings


class Coordinator:
    """One `python -m tuneoff.run.lifecycle` process and everything that descends from it."""

    def __init__(self, execution: Execution, results: Path, temporary: Path, undeploy: Undeploy | None = None) -> None:
        self._execution_id = execution.execution_id
        command = [sys.executable, "-m", "tuneoff.run.lifecycle", str(execution.folder)]
        environment = {
            **{name: value for name, value in os.environ.items() if name != _COMPILES_ANEW},
            **thread_environment(execution.spec.experiment.workers.threads),
            MARK: execution.execution_id,
            RESULTS_MARK: str(results.resolve()),
            "TMPDIR": str(temporary),
            "PYTHONHASHSEED": "0",
            "PYTHONUNBUFFERED": "1",
            **import_path(),
            **as_parent(),
        }
        self._not_adopted = set(children(os.getpid()))
        with contextlib.ExitStack() as opened:
            stdin: IO[str] | int = subprocess.DEVNULL
            if undeploy is not None:  # what it is to do comes from here: the files of the folder may be anybody's
                command.append(f"--undeploy={undeploy.seconds:g}")
                stdin = opened.enter_context(open(os.memfd_create("undeploy"), "w+"))
                json.dump({**stored(execution), "trial_context": asdict(undeploy.context)}, stdin)
                stdin.seek(0)
            log = opened.enter_context(open(open_to_change(execution.folder / LOG, os.O_WRONLY | os.O_APPEND), "ab"))
            self._process = subprocess.Popen(
                command, stdin=stdin, stdout=log, stderr=log, start_new_session=True, env=environment
            )
        self.pid = self._process.pid
        self._pidfd = os.pidfd_open(self.pid)

    def wait(self, seconds: float) -> int | None:
        """Return the exit code if the process ends within `seconds`, else None.

        While it lives it adopts what the run orphans: what this process has been left by then is of somebody else.
        """
        select.select([self._pidfd], [], [], max(0.0, seconds))
        seen = children(os.getpid())
        code = self._process.poll()
        if code is None:
            self._not_adopted.update(seen)
        return code

    def ask_to_end(self) -> None:
        """SIGTERM: the coordinator un-deploys and ends."""
        kill(self.pid, signal.SIGTERM)

    def kill_all(self) -> list[int]:
        """SIGKILL the coordinator and every other process of the run."""
        killed = end_all(lambda: [*([self.pid] if self._process.poll() is None else []), *self.descendants()])
        self._process.wait()
        return killed

    def descendants(self) -> list[int]:
        """Return the living processes of the run but the coordinator itself, whatever they did to their environment and session.

        The coordinator adopts those that lose their parent, and what it leaves this process adopts, if it is a subreaper: a child
        in another session that is new since the last `wait`, for what this process itself starts meanwhile is in its own.
        """
        marked = {*with_mark(MARK, self._execution_id), *in_session(self.pid)}
        new = [pid for pid in children(os.getpid()) if pid not in self._not_adopted]
        adopted = {pid for pid in new if session_of(pid) not in (0, os.getsid(0))}
        below = {child for pid in {self.pid, *adopted} for child in descendants(pid)}
        return sorted(pid for pid in {*marked, *adopted, *below} - {self.pid} if is_alive(pid))

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
