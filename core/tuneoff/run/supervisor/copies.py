"""Copies of a job at the same time: a process of its own supervises each, `python -m tuneoff.run.supervisor.copies DESCRIPTOR`.

A supervisor tells the processes of its run by whose children they are, so one process cannot supervise several runs at once.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from tuneoff.base.interrupting import asked_to_end
from tuneoff.base.process_limits import as_parent, die_with_parent
from tuneoff.base.processes import become_subreaper
from tuneoff.errors import TuneoffError
from tuneoff.experiment.power_settings import PowerSettings
from tuneoff.measure.power.metering import HostPower
from tuneoff.run.machine import throttle_count, throttled
from tuneoff.run.progress import Listener, LiveRun
from tuneoff.run.supervisor.execution import import_path
from tuneoff.run.supervisor.run import POLL_SECONDS, RunRequest, Supervised, supervise

READY = True  # what a supervisor says, and what it is told once all are
SHARED = ("spec", "results", "flags", "accounting", "processors")  # of a `RunRequest`


def supervise_copies(requests: Sequence[RunRequest], power: PowerSettings) -> list[Supervised | None]:
    """Run one execution of each at the same time and return how they ended; None where its supervisor died: it has no end.

    They begin once all supervisors are ready; where the interrupt comes before, none does, and nothing is returned. `requests`:
    with one interrupt, and one listener, which sees the first run.

    Raises:
        TuneoffError, OSError: as `supervise` does, once all have ended, which the others then do as if interrupted.
    """
    listener, interrupt = requests[0].listener, requests[0].interrupt
    ready: set[Connection] = set()
    answers: dict[Connection, Any] = {}
    has_begun = is_asked = False
    with contextlib.ExitStack() as started:
        copies = [started.enter_context(_supervisor(request, power)) for request in requests]
        while len(answers) < len(copies):
            is_over = interrupt.is_set() or any(map(_is_problem, answers.values()))
            if is_over and not has_begun:
                break
            if is_over and not is_asked:
                is_asked = True
                for _, process in copies:
                    process.terminate()  # it un-deploys and ends
            if not has_begun and len(ready | answers.keys()) == len(copies):
                has_begun = True
                for connection in ready:
                    _send(connection, READY)
            heard = wait([connection for connection, _ in copies if connection not in answers], POLL_SECONDS)
            for connection in (connection for connection, _ in copies if connection in heard):
                message = _received(connection)
                if message is READY:
                    ready.add(connection)
                elif isinstance(message, LiveRun):
                    listener.run_progress(message)
                else:
                    answers[connection] = message
    for problem, cause in filter(_is_problem, answers.values()):
        raise problem from cause
    return [answers[connection] for connection, _ in copies] if len(answers) == len(copies) else []


def _is_problem(answer: Any) -> bool:
    """Tell whether a supervisor answered with an error and its cause, which is none of what is sent with it."""
    return isinstance(answer, tuple)


def _received(connection: Connection) -> Any:
    """Return what the other end sends next; None where that has ended."""
    try:
        return connection.recv()
    except (EOFError, OSError):
        return None


def _send(connection: Connection, message: Any) -> None:
    """Send it, unless the other end has died, of which whoever receives from it hears."""
    with contextlib.suppress(OSError):
        connection.send(message)


@contextlib.contextmanager
def _supervisor(request: RunRequest, power: PowerSettings) -> Iterator[tuple[Connection, subprocess.Popen[bytes]]]:
    """Start the process that supervises a run, and give it that; it has ended when the block ends."""
    connection, other = Pipe()
    with connection:
        with other:
            process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(other.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
                start_new_session=True,  # a terminal's Ctrl-C comes through the command, once
                env={**os.environ, **import_path(), **as_parent()},
            )
        try:
            shared = {name: getattr(request, name) for name in SHARED}
            _send(connection, (shared, power, request.power.baseline))  # it opens the meter again
            yield connection, process
        finally:
            process.kill()  # where it has not ended, or the block failed
            process.wait()


class _Progress(Listener):
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def run_progress(self, live: LiveRun) -> None:
        _send(self._connection, live)


def main() -> None:
    """Supervise the run that the other end of the descriptor asks for, once it says so, and answer how it ended."""
    die_with_parent()
    connection = Connection(int(sys.argv[1]))
    os.set_inheritable(connection.fileno(), False)
    shared, power, baseline = connection.recv()
    become_subreaper()
    throttled_before = throttle_count()
    answer: Supervised | tuple[Exception, BaseException | None]
    with asked_to_end() as interrupt:  # until it has answered
        try:
            with contextlib.closing(HostPower(power)) as meters:
                connection.send(READY)
                connection.recv()
                answer = supervise(
                    RunRequest(
                        **shared,
                        listener=Listener() if shared["spec"].copy else _Progress(connection),
                        interrupt=interrupt,
                        flags_after=lambda: throttled(throttled_before),
                        power=replace(meters.plan, baseline=baseline),
                    )
                )
        except (TuneoffError, OSError) as error:
            answer = error, error.__cause__
        _send(connection, answer)


if __name__ == "__main__":
    main()
