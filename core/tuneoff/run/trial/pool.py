"""Long-lived worker processes for adapters that may choose: each a fresh interpreter, or forked from one (`worker_process`)."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from typing import Any, NamedTuple, Protocol

from tuneoff.base import clock
from tuneoff.base.process_limits import die_with_parent
from tuneoff.base.processes import end_all, kill_tree
from tuneoff.base.targets import load_target
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.platform import Death, Message, News, Pool, Ready
from tuneoff.run.trial.children import end_children, hold_children, left_by
from tuneoff.run.trial.run_trial import Report, TrialOutcome, run_trial
from tuneoff.run.trial.trial_process import TrialProcess, trial_process
from tuneoff.run.trial.worker_process import WORKER_FLAG, ForkServer, WorkerProcess, start_interpreter

_GONE = object()


class _Last(NamedTuple):
    """The answer of a worker whose process leaves."""

    content: Any


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

    @property
    def is_leaving(self) -> bool:
        """Whether its next answer is its last one."""
        return self.process.is_replaceable and self.process.is_spent

    def answer(self, content: Any) -> None:
        """Send the answer to a task.

        Raises:
            EOFError: a fresh process takes the worker's place.
        """
        if self.is_leaving:
            self.pipe.send(_Last(content))
            raise EOFError
        self.pipe.send(content)


class _Started(NamedTuple):
    """A worker's process."""

    process: WorkerProcess
    pipe: connection.Connection
    pidfd: int  # tells its end: children that it forked may keep the other end of the pipe open


class WorkerPool(Pool):
    """`count` worker processes that run `target` ("module:function", called with a Worker and `arguments`).

    Each imports `preload` before its first task; `is_forked`: one process does, and they are forked from it.

    Raises:
        ValueError: more workers than slots: each reserves one, so the others' trials would wait for it.
    """

    def __init__(
        self,
        context: TrialContext,
        count: int,
        target: str,
        arguments: tuple[Any, ...] = (),
        preload: Sequence[str] = (),
        *,
        is_forked: bool = False,
    ) -> None:
        if count > context.slots:
            raise ValueError(f"`count <= slots` must hold, but got {count=}, slots={context.slots}; raise `workers.count`")
        self._context, self._target, self._arguments, self.count = context, target, arguments, count
        self._preload = (target.partition(":")[0], *preload)
        self._server = ForkServer(self._preload) if is_forked else None
        self._workers: dict[int, _Started] = {}

    def start(self) -> None:
        for index in range(self.count):
            self.start_worker(index)
        for index, worker in list(self._workers.items()):
            try:
                worker.pipe.recv()
            except (EOFError, ConnectionResetError) as error:
                raise self._bury(index).at_start() from error

    def start_worker(self, index: int) -> None:
        ours, theirs = connection.Pipe()
        with theirs:
            descriptor = theirs.fileno()
            if self._server is not None:
                process = self._server.fork(descriptor)
            else:
                process = start_interpreter(WORKER_FLAG, descriptor, devices=self._context.devices[index : index + 1])
        self._workers[index] = _Started(process, ours, os.pidfd_open(process.pid))
        self.send(index, (self._target, index, str(self._context.path), self._arguments, self._preload))

    def send(self, index: int, content: Any) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._workers[index].pipe.send(content)

    def wait(self, timeout_seconds: float | None = None) -> list[News]:
        news: list[News] = []
        ends = [end for worker in self._workers.values() for end in (worker.pipe, worker.pidfd)]
        ready = connection.wait(ends, timeout_seconds)
        for index, (_, pipe, pidfd) in list(self._workers.items()):
            if pipe not in ready and pidfd not in ready:
                continue
            try:
                content = pipe.recv() if pipe in ready or pipe.poll() else _GONE  # sent while `wait` looked at one after another
            except (EOFError, ConnectionResetError):
                content = _GONE
            if isinstance(content, _Last):
                kill_tree(self._workers[index].process.pid)
                self._bury(index)
                self.start_worker(index)  # what is sent to it waits until it is ready
                content = content.content
            if content is _GONE:
                news.append(self._bury(index))
            elif not isinstance(content, Ready):  # of a worker that was started again
                news.append(Message(index, content))
        return news

    def close(self, grace_seconds: float = 1.0) -> None:
        """End all workers: close their pipes (an idle worker ends at once), then SIGKILL; and the fork server. Idempotent."""
        workers = list(self._workers.values())
        self._workers.clear()
        for worker in workers:
            with contextlib.suppress(OSError):
                worker.pipe.send(None)
            worker.pipe.close()
        deadline = clock.monotonic_ns() + int(grace_seconds * clock.NANOSECONDS)
        for process, _, pidfd in workers:
            if not connection.wait([pidfd], max(0.0, (deadline - clock.monotonic_ns()) / clock.NANOSECONDS)):
                kill_tree(process.pid)
            os.close(pidfd)
            process.wait()
        if self._server is not None:
            self._server.close()
            self._server = None

    def _bury(self, index: int) -> Death:
        process, pipe, pidfd = self._workers.pop(index)
        pipe.close()
        code = process.wait()
        os.close(pidfd)
        end_all(lambda: left_by(self._context.execution_id, process.pid))
        return Death(index, process.pid, code)


def run_worker(
    target: str, index: int, context_path: str, pipe: Pipe, arguments: tuple[Any, ...], *, is_replaceable: bool = False
) -> None:
    """Be a worker process, from its start on; it ends without the interpreter's teardown (torch needs over a second for it).

    `is_replaceable`: who reads the pipe starts a fresh process in place of one that is spent.
    """
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    context = TrialContext.read(context_path)
    hold_children(context.execution_id)
    trial_process(context, slot=index % context.slots).is_replaceable = is_replaceable
    pipe.send(Ready(index))
    code = 0
    try:
        load_target(target)(Worker(index, context, pipe), *arguments)
    except (EOFError, ConnectionError, TimeoutError):
        code = 0  # the coordinator is gone or closed the pool
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    finally:
        end_children()
        sys.stdout.flush()
        sys.stderr.flush()
        if sys.exc_info()[0] is None:
            os._exit(code)
