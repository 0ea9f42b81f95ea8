"""What a job of SLURM does: it is the agent of its host, and has the worker's process beside it. submitit calls `Job` there."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tuneoff.base.processes import end_all
from tuneoff.run.trial.children import left_by
from tuneoff.run.trial.faults import out_of_memory_kills
from tuneoff_adapters.hosts.agent import Agent, serve
from tuneoff_adapters.slurm.channel import Channel, TamperedError, greet

AGENT, WORKER = "agent", "worker"  # what a connection is of
WORKER_MODULE = "tuneoff_adapters.slurm.worker"
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

    def connect(self, kind: str, index: int, about: Any) -> Channel:
        """Return a connection; `about`: what the coordinator is told of its other end.

        Raises:
            OSError: there is none, or who answers does not know the key.
        """
        deadline = time.monotonic() + CONNECT_SECONDS
        while True:
            try:
                return greet(self.host, self.port, self.key, (kind, index, os.environ["SLURM_JOB_ID"], about))
            except (ConnectionResetError, BrokenPipeError, TimeoutError):  # it listens, and has let this connection go
                if time.monotonic() > deadline:
                    raise
                time.sleep(AGAIN_SECONDS)


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
    """The agent in a job. It cleans nothing: what is left of a job SLURM ends with it."""

    def __init__(self, endpoint: Endpoint, index: int) -> None:
        super().__init__()
        self._endpoint, self._index = endpoint, index

    def clean(self, besides: str | None = None) -> list[str]:
        return []

    def work(self) -> dict[str, Any]:
        """Run a worker to its end; return its exit code, and how many processes of the job the kernel killed for memory."""
        endpoint = self._endpoint
        command = [sys.executable, "-m", WORKER_MODULE, endpoint.host, str(endpoint.port), str(self._index)]
        before = _kills()
        process = subprocess.Popen(command, stdin=subprocess.PIPE)
        process.communicate(endpoint.key)
        end_all(lambda: left_by(self._execution_id, process.pid))
        return {"exit_code": process.returncode, "out_of_memory": _kills() > before}


@dataclass(frozen=True, slots=True)
class Job:
    """Called in the job. SLURM may end it at any moment, and start it again: it begins anew."""

    endpoint: Endpoint
    index: int

    def __call__(self) -> None:
        os.environ.pop("TMPDIR", None)  # of the machine that submitted
        line = _JobLine(self.endpoint.connect(AGENT, self.index, socket.gethostname()))
        serve(JobAgent(self.endpoint, self.index), line)

    def checkpoint(self, *_: Any, **__: Any) -> Any:
        """Have submitit put the job back into the queue when its time is over."""
        from submitit.core.utils import DelayedSubmission

        return DelayedSubmission(self)


def _kills() -> int:
    """Return how many processes the kernel has killed for their memory in this process's control groups."""
    with open("/proc/self/cgroup") as file:
        groups = [line.rstrip("\n").split(":", 2) for line in file]
    roots = {"memory": "/sys/fs/cgroup/memory", "": "/sys/fs/cgroup"}
    folders = (f"{root}{path}" for _, names, path in groups for name, root in roots.items() if name in names.split(","))
    return sum(map(out_of_memory_kills, folders))
