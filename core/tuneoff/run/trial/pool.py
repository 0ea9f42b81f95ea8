"""Long-lived worker processes for adapters that may choose: started by a forkserver that has the workload's imports."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tuneoff.base import clock
from tuneoff.base.process_limits import die_with_parent
from tuneoff.base.processes import ended, stat_fields
from tuneoff.base.targets import load_target
from tuneoff.errors import InfrastructureError, StepError
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.run.trial.run_trial import Report, TrialOutcome, run_trial
from tuneoff.run.trial.trial_process import TrialProcess, trial_process

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess


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

    @property
    def cause(self) -> str:
        if self.text is not None:
            return self.text
        return f"worker process {self.pid} {'ended' if self.exit_code is None else ended(self.exit_code)}"

    def at_start(self) -> StepError:
        """Return the error of a worker that never became ready; a signal, as an unseen end, is the infrastructure's."""
        kind = StepError if self.exit_code is not None and self.exit_code >= 0 else InfrastructureError
        return kind(f"a worker must start, but {self.cause}; see the run's log")


News = Ready | Message | Death


class Pipe(Protocol):
    """A worker's way to its coordinator. `recv` raises EOFError once that is gone."""

    def send(self, content: Any, /) -> None: ...

    def recv(self) -> Any: ...


@dataclass(frozen=True)
class Worker:
    """What a worker's function gets: its number (= preferred slot), the trial context, and the pipe to the coordinator."""

    index: int
    context: TrialContext
    pipe: Pipe
    role: str = "worker"  # of its events' process

    @property
    def process(self) -> TrialProcess:
        """What the process keeps between trials."""
        return trial_process(self.context, self.role, self.index % self.context.slots)

    def run(self, trial_id: str, configuration: Mapping[str, Any], report: Report, **identity: Any) -> TrialOutcome:
        """Run a trial; `identity`: `attempt` and `framework_id` of `run_trial`."""
        return run_trial(self.context, trial_id, configuration, report, role=self.role, **identity)


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


class WorkerPool(Pool):
    """`count` worker processes that run `target` ("module:function", called with a Worker and `arguments`).

    The forkserver imports `preload` and never computes (a fork after computing with several threads hangs).

    Raises:
        ValueError: more workers than slots: each reserves one, so the others' trials would wait for it.
    """

    def __init__(
        self, context: TrialContext, count: int, target: str, arguments: tuple[Any, ...] = (), preload: Sequence[str] = ()
    ) -> None:
        if count > context.slots:
            raise ValueError(f"`count <= slots` must hold, but got {count=}, slots={context.slots}; raise `workers.count`")
        self._context, self._target, self._arguments, self.count = context, target, arguments, count
        self._processes: dict[int, ForkServerProcess] = {}
        self._pipes: dict[int, connection.Connection] = {}
        self._server_pid: int | None = None
        self._server = multiprocessing.get_context("forkserver")
        # a module that cannot be imported is skipped silently by the forkserver: name only what exists
        self._server.set_forkserver_preload(["tuneoff.run.trial.pool", target.partition(":")[0], *preload])

    def start(self) -> None:
        for index in range(self.count):
            self.start_worker(index)
        for index, pipe in list(self._pipes.items()):
            try:
                pipe.recv()
            except (EOFError, ConnectionResetError) as error:
                raise self._bury(index).at_start() from error

    def start_worker(self, index: int) -> None:
        ours, theirs = self._server.Pipe()
        process = self._server.Process(
            target=run_worker, args=(self._target, index, str(self._context.path), theirs, self._arguments), daemon=True
        )
        process.start()
        theirs.close()
        fields = stat_fields(process.pid or 0)
        self._server_pid = int(fields[1]) if fields else self._server_pid
        self._processes[index], self._pipes[index] = process, ours

    def send(self, index: int, content: Any) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._pipes[index].send(content)

    def wait(self, timeout_seconds: float | None = None) -> list[News]:
        pipes = {pipe: index for index, pipe in self._pipes.items()}
        found: list[News] = []
        for ready in connection.wait(list(pipes), timeout_seconds):
            index = pipes[ready]  # type: ignore[index]
            try:
                content = self._pipes[index].recv()
            except (EOFError, ConnectionResetError):
                found.append(self._bury(index))
            else:
                if not isinstance(content, Ready):  # of a worker that was started again
                    found.append(Message(index, content))
        return found

    def close(self, grace_seconds: float = 1.0) -> None:
        """End all workers: close their pipes (an idle worker ends at once), then SIGKILL; and the forkserver. Idempotent."""
        for pipe in self._pipes.values():
            with contextlib.suppress(OSError):
                pipe.send(None)
            pipe.close()
        self._pipes.clear()
        deadline = clock.monotonic_ns() + int(grace_seconds * clock.NANOSECONDS)
        for process in self._processes.values():
            process.join(max(0.0, (deadline - clock.monotonic_ns()) / clock.NANOSECONDS))
            if process.is_alive():
                process.kill()
                process.join()
            process.close()
        self._processes.clear()
        self._end_server()

    def _end_server(self) -> None:
        """End the forkserver: by itself it would do so after the coordinator, and with torch take a second of CPU time for it."""
        pid, self._server_pid = self._server_pid, None
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)  # whoever adopted a worker is no child of ours
            os.kill(pid, signal.SIGKILL)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # multiprocessing reaps it, should it start another one

    def _bury(self, index: int) -> Death:
        self._pipes.pop(index).close()
        process = self._processes.pop(index)
        process.join()
        death = Death(index, process.pid or 0, process.exitcode)
        process.close()
        return death


def run_worker(target: str, index: int, context_path: str, pipe: Pipe, arguments: tuple[Any, ...]) -> None:
    """Be a worker process, from its start on; it ends without the interpreter's teardown (torch needs over a second for it)."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    context = TrialContext.read(context_path)
    trial_process(context, slot=index % context.slots)
    pipe.send(Ready(index))
    code = 0
    try:
        load_target(target)(Worker(index, context, pipe), *arguments)
    except (EOFError, ConnectionError, TimeoutError):
        code = 0  # the coordinator is gone or closed the pool
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        if sys.exc_info()[0] is None:
            os._exit(code)
