"""The difference between the two platforms, all of it: where the API server is, and who starts it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tuneoff.base.processes import command_line, end_all, is_alive, kill, last_words, with_mark
from tuneoff.errors import InfrastructureError
from tuneoff.record.run_context import RunContext
from tuneoff.run.supervisor.logs import shorten
from tuneoff_adapters.katib.options import EMULATION
from tuneoff_platforms.time_limits import SETUP_SHARE

EMULATED_MARK = "TUNEOFF_KATIB_EMULATED"  # environment variable with the execution id in the emulated server's process
EMULATED_IMAGE = "tuneoff.local/emulated:1"  # what trials on `emulated` name as their image: they run this machine's Python
END_SECONDS = 5.0  # from SIGTERM to SIGKILL; the server needs at most 2
_LOOK_SECONDS = 0.01
_SERVING = "serving "  # begins the server's line that it is ready: no reason for an end
_launched: set[int] = set()  # servers that this process started; one that it only adopted ends with who started it


class EmulatedServer:
    """The emulated API server of one execution: one process, with a folder of its own below the framework's.

    It is found again by its mark, so a fresh process that only un-deploys can end it; its objects end with it.
    """

    def __init__(self, context: RunContext) -> None:
        self._execution_id = context.execution_id
        self._ready_seconds = SETUP_SHARE * context.spec.experiment.timeouts.deploy_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._pid: int | None = None
        self.folder = context.work_dir / "emulated"  # where it keeps the pods' files
        self.kubeconfig = context.work_dir / "kubeconfig"  # where that lies while it serves
        self.log = context.work_dir / "emulated.log"  # what it prints

    @property
    def is_running(self) -> bool:
        """Whether it can be used: its process lives, and this one started it. One that another process started ends with that."""
        return self._started_here() is not None

    def start(self) -> Path:
        """Start it, unless this process did; return its kubeconfig once it serves.

        One that another process started ends with that one, so it is ended here for good.

        Raises:
            InfrastructureError: it ended, or is not ready in time.
        """
        deadline = time.monotonic() + self._ready_seconds
        self._pid = self._started_here()
        if self._pid is None:
            self.end()
            self.folder.mkdir(mode=0o700, exist_ok=True)  # whatever the umask: pods' commands are kept there
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(
                    self.command(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, EMULATED_MARK: self._execution_id},
                    process_group=0,  # a signal to the coordinator's group is not for it: un-deploy needs it
                )
            self._pid = self._process.pid
            _launched.add(self._pid)
        while not self.kubeconfig.exists():
            if time.monotonic() > deadline:
                self.end()
                raise InfrastructureError(f"the emulated API server is not ready after {self._ready_seconds:g} s; see {self.log}")
            time.sleep(_LOOK_SECONDS)
            self.check()
        return self.kubeconfig

    def command(self) -> Sequence[str]:
        """Return the command that serves."""
        where = [str(self.folder), "--kubeconfig", str(self.kubeconfig)]
        return [sys.executable, "-m", EMULATION, *where, "--image", EMULATED_IMAGE]

    def check(self) -> None:
        """Raise InfrastructureError in one line if it was started here and has ended."""
        if self._pid is None:
            return
        code = None if self._process is None else self._process.poll()
        if code is None and (self._process is not None or is_alive(self._pid)):
            return
        how = "" if code is None else f" (killed by {signal.Signals(-code).name})" if code < 0 else f" (exit code {code})"
        words = last_words(self.log)
        words = "it printed nothing" if words.startswith(_SERVING) else words
        raise InfrastructureError(f"the emulated API server ended{how}: {words}; see {self.log}")

    def end(self) -> None:
        """End it and all processes that it started, and wait for that; idempotent, also in a fresh process."""
        servers = self._running()
        for pid in servers:
            kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + END_SECONDS
        while any(map(is_alive, servers)) and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        for pid in servers:
            kill(pid)
        end_all(self._marked)
        for pid in servers:
            with contextlib.suppress(ChildProcessError):  # not started by this process
                os.waitpid(pid, 0)
        self._process = self._pid = None
        self.kubeconfig.unlink(missing_ok=True)
        for path in self.folder.glob("pods/*/logs/*.log"):  # nobody writes or reads them any more
            shorten(path)

    def _started_here(self) -> int | None:
        return next((pid for pid in self._running() if pid in _launched), None)

    def _running(self) -> list[int]:
        """Return the server's own process; those of the pods may carry the mark too."""
        return [pid for pid in self._marked() if EMULATION in command_line(pid, None).split()]

    def _marked(self) -> list[int]:
        return with_mark(EMULATED_MARK, self._execution_id)
