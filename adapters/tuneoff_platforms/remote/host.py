"""A host as the coordinator has it: an agent there, behind the command that reaches the host."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tuneoff.base import clock
from tuneoff.base.processes import MARK, last_words
from tuneoff.errors import InfrastructureError

AGENT = "tuneoff_platforms.remote.agent"
PASSED_ON = ("PYTHONPATH", "PYTHONSAFEPATH", "PYTHONHASHSEED")  # variables that decide what a process imports
MOST_REPLY_BYTES = 10_000_000  # of an answer
_END_SECONDS = 2.0


class Timed(NamedTuple):
    """An answer, and when it arrived (monotonic, nanoseconds)."""

    answer: Any
    arrived_ns: int


class AgentNode(Protocol):
    """Where an agent is asked: over a command (`Host`), or by what a framework has for that."""

    name: str

    def send(self, do: str, **arguments: Any) -> Future[Timed]:
        """Ask for one of the agent's methods; the future fails with `InfrastructureError`."""

    def close(self, at_once: bool = False) -> None:
        """Let the agent go."""


class Wire(ABC):
    """An agent to which JSON texts go by `say`, and whose answers come as such."""

    def __init__(self, name: str, say: Callable[[bytes], None], replies: Iterable[bytes]) -> None:
        self.name, self._say, self._replies = name, say, replies
        self._waiting: dict[int, Future[Timed]] = {}
        self._lock, self._count, self._is_gone = threading.Lock(), 0, False
        threading.Thread(target=self._read, name=f"host {name}", daemon=True).start()

    @property
    def is_gone(self) -> bool:
        return self._is_gone

    @abstractmethod
    def problem(self) -> str:
        """Return why the agent cannot be reached any more."""

    def send(self, do: str, **arguments: Any) -> Future[Timed]:
        future: Future[Timed] = Future()
        with self._lock:
            self._count += 1
            line = json.dumps({"n": self._count, "do": do, "with": arguments})
            self._waiting[self._count] = future
            try:
                self._say(line.encode())
            except (OSError, ValueError):
                self._is_gone = True
        if self._is_gone:
            self.fail()
        return future

    def fail(self) -> None:
        """Fail what waits for an answer."""
        with self._lock:
            self._is_gone = True
            waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            future.set_exception(InfrastructureError(self.problem()))

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # the connection was closed here
            for line in self._replies:
                self._take(line, clock.monotonic_ns())
        self.fail()

    def _take(self, line: bytes, arrived_ns: int) -> None:
        try:
            reply = json.loads(line)
            with self._lock:
                future = self._waiting.pop(reply["n"])
        except (ValueError, LookupError, TypeError):  # a greeting of the host's shell
            return
        if "error" in reply:
            future.set_exception(InfrastructureError(f"host {self.name}: {reply['error']}"))
        else:
            future.set_result(Timed(reply["answer"], arrived_ns))


class Host(Wire):
    """An agent that was started by a command; without a template, on this machine."""

    def __init__(self, name: str, template: str | None, python: str, log: Path) -> None:
        self._log = log
        try:
            with log.open("ab") as file:
                self._process = started(name, template, [python, "-m", AGENT], stdout=subprocess.PIPE, stderr=file)
        except OSError as error:
            raise InfrastructureError(f"host {name} cannot be reached: {error}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests = self._process.stdin
        super().__init__(name, self._write, iter(partial(self._process.stdout.readline, MOST_REPLY_BYTES), b""))

    def _write(self, line: bytes) -> None:
        self._requests.write(line + b"\n")
        self._requests.flush()

    def problem(self) -> str:
        return f"host {self.name} cannot be reached: {last_words(self._log)}"

    def close(self, at_once: bool = False) -> None:
        """End the connection: its agent then cleans, if it has not, and goes. `at_once`: that cannot be waited for."""
        with self._lock, contextlib.suppress(OSError):  # what was not sent
            self._requests.close()
        try:
            self._process.wait(0.0 if at_once else _END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def started(name: str, template: str | None, words: Sequence[str], **streams: Any) -> subprocess.Popen[bytes]:
    """Start a command on a host, in this folder if that is there; without a template, on this machine. Its input is a pipe.

    Raises:
        OSError: no process can be made here; whatever else is wrong, its output says.
    """
    variables = [f"{variable}={os.environ[variable]}" for variable in PASSED_ON if variable in os.environ]
    line = f"cd {shlex.quote(os.getcwd())} 2>/dev/null; {shlex.join(['exec', 'env', *variables, *words])}"
    command = ["sh", "-c"] if template is None else [word.replace("{host}", name) for word in shlex.split(template)]
    unmarked = {key: value for key, value in os.environ.items() if key != MARK}
    tried = ["sh", "-c", 'exec "$@"', "sh", *command, line]  # says in the log what cannot be run
    return subprocess.Popen(tried, stdin=subprocess.PIPE, env=unmarked, **streams)


def answers(futures: Mapping[str, Future[Timed]], seconds: float) -> dict[str, Any]:
    """Wait for the answers of several hosts, by name.

    Raises:
        InfrastructureError: one of them failed, or did not answer in time.
    """
    deadline_ns, answers_by_name = after(seconds), {}
    for name, future in futures.items():
        try:
            answers_by_name[name] = future.result(until(deadline_ns)).answer
        except TimeoutError as error:
            raise InfrastructureError(f"host {name} must answer within {seconds:.2g} s, but did not") from error
    return answers_by_name


def sent(nodes: Sequence[AgentNode], do: str, **arguments: Any) -> dict[str, Future[Timed]]:
    """Ask all of them the same."""
    return {node.name: node.send(do, **arguments) for node in nodes}


def after(seconds: float) -> int:
    """Return the moment in so many seconds, monotonic, in nanoseconds."""
    return clock.monotonic_ns() + int(seconds * clock.NANOSECONDS)


def until(deadline_ns: int) -> float:
    """Return how many seconds are left until a moment; 0: it has passed."""
    return max(0.0, (deadline_ns - clock.monotonic_ns()) / clock.NANOSECONDS)
