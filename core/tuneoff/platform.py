"""The contract of a platform: a plugin of the entry-point group `tuneoff.platforms`, which has the workers of core's pool."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from tuneoff.base.processes import ended
from tuneoff.errors import InfrastructureError, StepError, UserError

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec
    from tuneoff.record.events.schema import Charged, Event
    from tuneoff.record.run_context import RunContext


_Task = TypeVar("_Task")


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker could take its first task. It sends this itself."""

    worker: int


@dataclass(frozen=True, slots=True)
class Message:
    """A worker sent something."""

    worker: int
    content: Any


@dataclass(frozen=True, slots=True)
class Death:
    """A worker process ended: its exit code, negative for a signal; `text`: why, where that is known otherwise."""

    worker: int
    pid: int
    exit_code: int | None
    text: str | None = None
    charged: Charged | None = None  # who ended it, where that is known

    @property
    def cause(self) -> str:
        if self.text is not None:
            return self.text
        return f"worker process {self.pid} {'ended' if self.exit_code is None else ended(self.exit_code)}"

    def at_start(self) -> StepError:
        """Return the error of a worker that never became ready; a signal, as an unseen end, is the infrastructure's."""
        is_own = self.exit_code is not None and self.exit_code >= 0
        kind = UserError if self.charged == "user" else StepError if is_own else InfrastructureError
        return kind(f"a worker must start, but {self.cause}; see the run's log")


News = Ready | Message | Death


class Pool(ABC):
    """`count` workers, wherever they are. A worker that dies stays dead until `start_worker(index)`."""

    count: int

    @abstractmethod
    def start(self) -> None:
        """Start all workers; at the return each could take a trial.

        Raises:
            StepError: a worker ended before it was ready.
            InfrastructureError: there is no place for it.
        """

    @abstractmethod
    def start_worker(self, index: int) -> None:
        """Start a worker in place of a dead one."""

    @abstractmethod
    def send(self, index: int, content: Any) -> None:
        """Send to a worker that is there; a dead one is reported by `wait`, not here."""

    @abstractmethod
    def wait(self, timeout_seconds: float | None = None) -> list[News]:
        """Return what happened, or nothing; messages of a worker come before its death."""

    @abstractmethod
    def close(self) -> None:
        """End all workers; idempotent."""

    def is_there(self, index: int) -> bool:
        """Whether a worker may be sent something now; else a `Ready` comes when it may."""
        return True

    def checkpoint_problem(self, trial_id: str) -> str | None:
        """Return why the checkpoint of a completed trial is not in the run's folder, or None."""
        return None

    def run(
        self,
        dispatch: Callable[[int, _Task | None], _Task | None],
        answered: Callable[[_Task, Any], Any],
        died: Callable[[Death, _Task | None], _Task | None],
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """Keep the workers busy until none has anything left to do; start those again that die.

        `dispatch(worker, again)` sends a worker without a task its next one, `again` if that is given, and returns it; None:
        there is none. `answered(task, content)` takes what a busy worker sent; anything that it returns but None is sent back,
        and the worker stays with its task. `died(death, task)` returns the task that is to be tried again at once, or None.
        `is_over()`: whether nothing new is left, asked where all workers are still to come.
        """
        busy: dict[int, _Task] = {}
        idle: set[int] = set()  # they got nothing: there was nothing left
        absent: set[int] = set()  # they are to come
        stranded: list[_Task] = []  # to be tried again by whoever is free first

        def give(worker: int, again: _Task | None = None) -> None:
            if not self.is_there(worker):
                absent.add(worker)
                stranded.extend([again] if again is not None else [])
                if again is None or not idle:
                    return
                worker, again = idle.pop(), None
            task = dispatch(worker, stranded.pop() if again is None and stranded else again)
            if task is None:
                idle.add(worker)
            else:
                busy[worker] = task

        for worker in range(self.count):
            give(worker)
        while busy or stranded or (absent and not idle and not is_over()):
            for event in self.wait():
                if isinstance(event, Ready):
                    if event.worker in absent:
                        absent.remove(event.worker)
                        give(event.worker)
                    continue
                task, again = busy.pop(event.worker, None), None
                if isinstance(event, Death):
                    idle.discard(event.worker)
                    again = died(event, task)
                    self.start_worker(event.worker)
                elif task is not None:
                    reply = answered(task, event.content)
                    if reply is not None:
                        busy[event.worker] = task
                        self.send(event.worker, reply)
                        continue
                give(event.worker, again)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolWork:
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
    def make_pool(self, work: PoolWork) -> Pool:
        """Return `workers.count` workers, not started yet.

        Add a line to `context.outside` before anything of them is outside this machine: `remove` is called while that is there.
        """

    def remove(self, seconds: float) -> None:  # noqa: B027
        """Remove within some time what is left of the workers once their pool is closed; idempotent.

        Raises:
            StepError: something is left.
        """
