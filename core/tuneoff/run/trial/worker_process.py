"""How a worker process begins: as a fresh interpreter, or forked from one that has imported modules for it.

A fork has what a fresh interpreter has (no parent of `multiprocessing`, its start method not set yet), but these imports in
common with the other workers, whose cost is paid once. The training's own module is not among them: each worker imports it, as
it may change its process.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Protocol

from tuneoff.base.process_limits import as_parent, seeing
from tuneoff.base.processes import ended, is_own_end
from tuneoff.errors import InfrastructureError, StepError

WORKER_FLAG, SERVER_FLAG = "--worker", "--fork-server"  # of `python -m tuneoff.run.trial`
_NUMBER_BYTES = 8


class WorkerProcess(Protocol):
    """A `Popen`, or what a fork server has in its place."""

    @property
    def pid(self) -> int: ...

    def wait(self) -> int:
        """Wait for its end and return its exit code, negative for a signal."""


def start_interpreter(flag: str, descriptor: int, *words: str, devices: Iterable[int] = ()) -> subprocess.Popen[bytes]:
    """Start a trial's program on a descriptor, which it inherits; it dies with this process, and sees these accelerators.

    Its `__main__` is one that the children which a training spawns do not import.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "tuneoff.run.trial", flag, str(descriptor), *words],
        stdin=subprocess.DEVNULL,
        pass_fds=(descriptor,),
        env={**os.environ, **as_parent(), **seeing(devices)},
    )


def worker_main(descriptor: int) -> None:
    """Be a worker, whose work is the first message of its pipe."""
    from tuneoff.run.trial.pool import run_worker

    os.set_inheritable(descriptor, False)
    pipe = Connection(descriptor)
    target, index, context_path, arguments, preload = pipe.recv()
    import_all(preload)
    run_worker(target, index, context_path, pipe, arguments, is_replaceable=True)


def import_all(modules: Iterable[str]) -> None:
    """Import modules; of one that fails the trial that needs it tells the reason."""
    for module in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(module)


class ForkServer:
    """An interpreter that imports modules and forks workers. It never computes: a fork after that, with threads, may hang."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = start_interpreter(SERVER_FLAG, theirs.fileno(), *modules)

    def fork(self, descriptor: int) -> WorkerProcess:
        """Start a worker on a descriptor.

        Raises:
            InfrastructureError: the server was ended from outside.
            StepError: it has ended by itself.
            OSError: it cannot fork.
        """
        try:
            socket.send_fds(self._socket, [bytes(_NUMBER_BYTES)], [descriptor])
            answer = self._answer()
        except ConnectionError as error:
            code = self._process.wait()
            kind = StepError if is_own_end(code) else InfrastructureError
            raise kind(f"process {self._process.pid}, which forks the workers, must live, but it {ended(code)}") from error
        if answer < 0:
            raise OSError(-answer, os.strerror(-answer))
        return _Fork(self, answer)

    def exit_code(self, pid: int) -> int:
        """Wait for a worker's end, and return its exit code."""
        self._socket.sendall(pid.to_bytes(_NUMBER_BYTES, "big"))
        return self._answer()

    def close(self) -> None:
        """End the server, and with it its workers."""
        self._socket.close()
        self._process.kill()
        self._process.wait()

    def _answer(self) -> int:
        data = self._socket.recv(_NUMBER_BYTES, socket.MSG_WAITALL)
        if not data:
            raise ConnectionResetError(f"the fork server of the workers, process {self._process.pid}, has ended")
        return int.from_bytes(data, "big", signed=True)


@dataclass(frozen=True, slots=True)
class _Fork:
    """A worker of a fork server, which keeps its zombie until `wait`."""

    server: ForkServer
    pid: int

    def wait(self) -> int:
        try:
            return self.server.exit_code(self.pid)
        except ConnectionError:
            return -signal.SIGKILL  # it died with its server


def fork_server_main(descriptor: int, modules: Sequence[str]) -> None:
    """Be a fork server until its socket is closed."""
    from tuneoff.base.process_limits import die_with_parent

    import_all(("tuneoff.run.trial.pool", *modules))
    server_pid = os.getpid()
    with socket.socket(fileno=descriptor) as server:
        while True:
            data, descriptors, _, _ = socket.recv_fds(server, _NUMBER_BYTES, 1)
            if not data:
                return
            if descriptors:
                try:
                    answer = os.fork()
                except OSError as error:  # no more processes, or no memory
                    answer = -(error.errno or errno.EAGAIN)
                if answer == 0:
                    try:
                        server.close()
                        die_with_parent(parent=server_pid)
                        worker_main(descriptors[0])
                    except BaseException:
                        traceback.print_exc()
                    finally:
                        os._exit(1)
                os.close(descriptors[0])
            else:
                answer = os.waitstatus_to_exitcode(os.waitpid(int.from_bytes(data, "big"), 0)[1])
            server.sendall(answer.to_bytes(_NUMBER_BYTES, "big", signed=True))
