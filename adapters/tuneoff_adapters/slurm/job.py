"""What a job of SLURM does: it is the agent of its host, and has the worker's process beside it. submitit calls `Job` there."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import connection
from typing import Any

from tuneoff.run.trial.faults import out_of_memory_kills
from tuneoff_adapters.hosts.agent import Agent
from tuneoff_adapters.hosts.agent import main as serve

AGENT, WORKER = "agent", "worker"  # what a connection is of
WORKER_MODULE = "tuneoff_adapters.slurm.worker"


@dataclass(frozen=True, slots=True)
class Way:
    """The way to the coordinator; both sides show that they know the key."""

    host: str
    port: int
    key: bytes

    @property
    def place(self) -> str:
        return f"{self.host}:{self.port}"

    def connect(self, kind: str, index: int, about: Any) -> connection.Connection:
        """Return a connection; `about`: what the coordinator is told of its other end."""
        made = connection.Client((self.host, self.port), authkey=self.key)
        keep_alive(made)
        made.send((kind, index, os.environ["SLURM_JOB_ID"], about))
        return made


def keep_alive(pipe: connection.Connection) -> None:
    """Let a connection that is silent for a whole trial be kept by what is between its ends, and its loss be seen."""
    with socket.socket(fileno=os.dup(pipe.fileno())) as way:
        way.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        way.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)


class JobAgent(Agent):
    """The agent in a job. It cleans nothing: what is left of a job SLURM ends with it."""

    def __init__(self, way: Way, index: int) -> None:
        super().__init__()
        self._way, self._index = way, index

    def clean(self, besides: str | None = None) -> list[str]:
        return []

    def work(self) -> dict[str, Any]:
        """Run a worker to its end; return its exit code, and how many processes of the job the kernel killed for memory."""
        way = self._way
        command = [sys.executable, "-m", WORKER_MODULE, way.host, str(way.port), str(self._index)]
        before = _kills()
        process = subprocess.Popen(command, stdin=subprocess.PIPE)
        process.communicate(way.key)
        return {"exit_code": process.returncode, "out_of_memory": _kills() > before}


@dataclass(frozen=True, slots=True)
class Job:
    """Called in the job. SLURM may end it at any moment, and start it again: it begins anew."""

    way: Way
    index: int

    def __call__(self) -> None:
        os.environ.pop("TMPDIR", None)  # of the machine that submitted
        answers = self.way.connect(AGENT, self.index, socket.gethostname())
        for descriptor in (0, 1):
            os.dup2(answers.fileno(), descriptor)
        serve(JobAgent(self.way, self.index))

    def checkpoint(self, *_: Any, **__: Any) -> Any:
        """Have submitit put the job back into the queue when its time is over."""
        from submitit.core.utils import DelayedSubmission

        return DelayedSubmission(self)


def _kills() -> int:
    return sum(map(out_of_memory_kills, _own_groups()))


def _own_groups() -> Sequence[str]:
    """Return the folders of this process's control groups of memory."""
    with open("/proc/self/cgroup") as file:
        groups = [line.rstrip("\n").split(":", 2) for line in file]
    roots = {"memory": "/sys/fs/cgroup/memory", "": "/sys/fs/cgroup"}
    return [f"{root}{path}" for _, names, path in groups for name, root in roots.items() if name in names.split(",")]
