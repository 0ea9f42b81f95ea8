"""The base of platforms that start each worker by a command or a queue: one adds `refuse`, `launch`, `states` and `cancel`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from tuneoff.platform import Platform, Pool, PoolWork

if TYPE_CHECKING:
    from tuneoff_platforms.remote.job import Job

__all__ = ["Launch", "LaunchState", "RemotePlatform"]


@dataclass(frozen=True, slots=True)
class Launch:
    """What was started for one worker: its name for the reader ("job 17"), by which the platform knows it, and its output."""

    name: str
    log: Path


@dataclass(frozen=True, slots=True)
class LaunchState:
    """What has become of a launch, and how its platform says that.

    `held`: waiting, and somebody else keeps it so. `unknown`: the platform did not answer.
    """

    phase: Literal["waiting", "held", "running", "ended", "unknown"]
    text: str
    is_out_of_memory: bool = False


class RemotePlatform(Platform):
    """A platform that has a `Job` run somewhere for each worker; that is the agent of its host, and reaches the run over TCP.

    Its hosts have the run's folder, and the same Python, tuneoff and packages, which is checked.
    """

    memory_limiter: ClassVar[str] = "watchdog on each host"
    """What ends a job that takes too much memory."""

    changes: ClassVar[Mapping[str, Any]] = {"memory_limiter": memory_limiter}

    lost_seconds: float = 60.0
    """A host that was silent for so long is lost, and ends by itself what runs there."""

    pending_seconds: float = 3600.0
    """How long a job may wait for its turn while the run has begun."""

    address: str = "127.0.0.1"
    """This machine's name or address, as the workers' hosts find it."""

    listen: str = "127.0.0.1"
    """Its own address at which it waits for them; "": all that it has."""

    @abstractmethod
    def launch(self, job: Job) -> Launch:
        """Have a job run somewhere: call it in a process there, or run `job.command(python)` with `job.key` as its input.

        Raises:
            InfrastructureError: it is not taken.
        """

    @abstractmethod
    def states(self, launches: Sequence[Launch]) -> Mapping[str, LaunchState]:
        """Return what became of launches, by name."""

    @abstractmethod
    def cancel(self, launch: Launch) -> None:
        """End a launch; one that cannot be told so ends by itself, as nobody answers it."""

    def settled(self, launch: Launch) -> LaunchState:
        """Return its state once it runs no more, or after some seconds as it is."""
        return self.states([launch])[launch.name]

    def hasten(self, launch: Launch) -> None:
        """Have a launch that waits start as soon as it can."""

    def make_pool(self, work: PoolWork) -> Pool:
        from tuneoff_platforms.remote.pool import RemotePool

        return RemotePool(self, work)
