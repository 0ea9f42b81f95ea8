"""The contract of a platform: a plugin of the entry-point group `tuneoff.platforms`, which has the workers of core's pool."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec
    from tuneoff.record.events.schema import Event
    from tuneoff.record.run_context import RunContext
    from tuneoff.run.trial.pool import Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What each worker does: it imports `preload` and calls `target` ("module:function") with a `Worker` and `arguments`.

    `package`: the framework's distribution, to be of one version wherever workers are ("": none). Workers
    that share no folder with the run answer with `answers` (dataclasses of plain values); `observe` takes their events.
    """

    target: str
    arguments: tuple[Any, ...]
    preload: tuple[str, ...]
    package: str
    answers: tuple[type, ...]
    observe: Callable[[int, Event], None]


class Platform(ABC):
    """Where the workers of core's pool are: it makes them, and removes what is left of them.

    Importing its module imports no client of a service: `tuneoff plan` needs what it declares. An instance lives in the run's
    coordinator; `remove` may also be called on a fresh one, after that was killed. What workers print goes to files below
    `context.work_dir / "workers"`.
    """

    options: ClassVar[frozenset[str]] = frozenset()
    """Names of its options, beside those of an adapter."""

    local_options: ClassVar[frozenset[str]] = frozenset()
    """Those of them that do not define the run: the way to the workers, and how long they are waited for."""

    run_folder: ClassVar[Literal["here", "shared", "none"]] = "shared"
    """How workers have the run's folder: on this machine, over a network, or not at all."""

    changes: ClassVar[Mapping[str, Any]] = {}
    """Fields of an adapter's `Capabilities` that are otherwise here, such as `memory_limiter`."""

    doctor: ClassVar[str | None] = None
    """As of an adapter."""

    def __init__(self, context: RunContext) -> None:
        self.context = context

    @classmethod
    def missing(cls) -> str | None:
        """Return what this machine lacks for it, and the way out, or None. Imports nothing."""
        return None

    @classmethod
    @abstractmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        """Return why it cannot serve a run, of whose options those of the adapter are left out, or None. Imports nothing.

        Raises:
            ExperimentError: an option is unknown or has a wrong value.
        """

    @classmethod
    def placement(cls, spec: RunSpec) -> str | None:
        """Return one line on what a run starts on which other hosts, or None: everything is here. Starts nothing."""
        return None

    @abstractmethod
    def make_pool(self, work: Work) -> Pool:
        """Return `workers.count` workers, not started yet.

        Add a line to `context.outside` before anything of them is outside this machine: `remove` is called while that is there.
        """

    def remove(self, seconds: float) -> None:  # noqa: B027
        """Remove within some time what is left of the workers once their pool is closed; idempotent.

        Raises:
            StepError: something is left.
        """
