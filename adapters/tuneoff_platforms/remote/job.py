"""What is launched for a worker: it is the agent of its host, and has the worker's process beside it.

`python -m tuneoff_platforms.remote.job HOST PORT INDEX NUMBER`: its input is the run's key.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tuneoff.base.process_limits import as_parent
from tuneoff.base.processes import end_all, kill_tree
from tuneoff.run.trial.children import left_by
from tuneoff.run.trial.faults import out_of_memory_kills
from tuneoff_platforms.remote.agent import Agent, serve
from tuneoff_platforms.remote.channel import Channel, TamperedError, greet

AGENT, WORKER = "agent", "worker"  # what a connection is of
JOB_MODULE, WORKER_MODULE = "tuneoff_platforms.remote.job", "tuneoff_platforms.remote.worker"
CONNECT_SECONDS, AGAIN_SECONDS = 60.0, 0.2  # for a connection, which strangers may crowd out; between two tries


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the coordinator listens; both sides show that they know the key."""

    host: str
    port: int
    key: bytes = field(repr=False)

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def connect(self, kind: str, index: int, number: int, about: Any) -> Channel:
        """Return a connection; `about`: what the coordinator is told of its other end.

        Raises:
            OSError: there is none, or who answers does not know the key.
        """
        deadline = time.monotonic() + CONNECT_SECONDS
        while True:
            try:
                return greet(self.host, self.port, self.key, (kind, index, number, about))
            except (ConnectionResetError, BrokenPipeError, TimeoutError):  # it listens, and has let this connection go
                if time.monotonic() > deadline:
                    raise
                time.sleep(AGAIN_SECONDS)


@dataclass(frozen=True, slots=True)
class Job:
    """Called where a worker is to be. It may be ended at any moment, and called again: it begins anew.

    `index`: of the worker; `number`: of the launch, among all of the run.
    """

    endpoint: Endpoint
    index: int
    number: int

    @property
    def key(self) -> bytes:
        """What goes into the command's input: it stands on no command line, which others may read."""
        return self.endpoint.key

    def command(self, python: str) -> list[str]:
        """Return the command that does the same."""
        return [python, "-m", JOB_MODULE, *self.words]

    @property
    def words(self) -> list[str]:
        return [self.endpoint.host, str(self.endpoint.port), str(self.index), str(self.number)]

    def __call__(self) -> None:
        channel = self.endpoint.connect(AGENT, self.index, self.number, socket.gethostname())
        serve(JobAgent(self), _JobLine(channel))


def job_of(words: Sequence[str], key: bytes) -> Job:
    """Return the job whose words and key these are."""
    host, port, index, number = words
    return Job(Endpoint(host, int(port), key), int(index), int(number))


@dataclass(frozen=True, slots=True)
class _JobLine:
    """The agent's line to the coordinator."""

    channel: Channel

    def requests(self, seconds: float) -> Sequence[bytes] | None:
        if not self.channel.wait(seconds):
            return ()
        try:
            return (self.channel.receive_bytes(),)
        except (OSError, EOFError) as error:
            if isinstance(error, TamperedError):
                print(f"the coordinator's message is not obeyed: {error}", file=sys.stderr, flush=True)
            return None

    def answer(self, reply: bytes) -> None:
        self.channel.send_bytes(reply)


class JobAgent(Agent):
    """The agent in a job. What it cleans is its own worker's: others of the run may be on this host."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self._job = job
        self._worker: int | None = None  # its process

    def clean(self, besides: str | None = None) -> list[str]:
        if (pid := self._worker) is not None:
            kill_tree(pid)
            end_all(lambda: left_by(self._execution_id, pid))
        return []

    def work(self, environment: Mapping[str, str]) -> dict[str, Any]:
        """Run a worker to its end; return its exit code, and whether the kernel killed processes here for their memory."""
        command = [sys.executable, "-m", WORKER_MODULE, *self._job.words]
        before = _kills()
        process = subprocess.Popen(command, stdin=subprocess.PIPE, env={**os.environ, **environment, **as_parent()})
        self._worker = process.pid
        process.communicate(self._job.key)
        self._worker = None  # its number is free
        end_all(lambda: left_by(self._execution_id, process.pid))
        return {"exit_code": process.returncode, "out_of_memory": _kills() > before}


def _kills() -> int:
    """Return how many processes the kernel has killed for their memory in this process's control groups."""
    with open("/proc/self/cgroup") as file:
        groups = [line.rstrip("\n").split(":", 2) for line in file]
    roots = {"memory": "/sys/fs/cgroup/memory", "": "/sys/fs/cgroup"}
    folders = (f"{root}{path}" for _, names, path in groups for name, root in roots.items() if name in names.split(","))
    return sum(map(out_of_memory_kills, folders))


if __name__ == "__main__":
    job_of(sys.argv[1:], sys.stdin.buffer.read())()
