"""`python -m tuneoff_platforms.remote.agent`: what tuneoff does on a host of a run, for as long as it hears from the coordinator.

Requests come through standard input, a JSON line each; answers go to standard output. When the input ends, or is silent for too
long, it ends all that it started, removes its folder and goes: a lost coordinator or connection leaves nothing on the host.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import select
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from tuneoff.base import clock
from tuneoff.base.code_digest import code_digest
from tuneoff.base.layout import EVENTS
from tuneoff.base.packages import installed_version, missing_modules, module_versions
from tuneoff.base.private_folder import PrivateFolder
from tuneoff.base.processes import MARK, has_more_memory, is_alive, kill, kill_tree, run_to_end, stop
from tuneoff.errors import InfrastructureError, ResultsError, TuneoffError
from tuneoff.record.events.reader import begun_attempt
from tuneoff.record.events.writer import EventWriter
from tuneoff.run.trial.faults import asked_kills, watched_memory
from tuneoff_platforms.remote.cleaning import clean

LOOK_SECONDS = 0.5  # between two looks for kills that were asked for


class Agent:
    """One host's part of an execution. Each public method is a request; what it returns goes into JSON."""

    def __init__(self) -> None:
        self._execution_id = ""
        self._run_dir = Path()
        self._folder: PrivateFolder | None = None
        self.lost_ns = 60 * clock.NANOSECONDS

    def begin(self, execution_id: str, run_dir: str, folder: str | None, makes: bool, lost_seconds: float) -> None:
        """Say what this host works for. `folder`: of its temporary files, removed at the end; it is made here (`makes`), or was.

        Raises:
            InfrastructureError: something else is there.
        """
        self._execution_id, self._run_dir = execution_id, Path(run_dir)
        if folder is not None:
            path = Path(folder)
            try:
                self._folder = PrivateFolder.make(path) if makes else PrivateFolder.open(path)
            except InfrastructureError:  # made by this user's agent for another name of this host: only this run knows the name
                if not makes or (opened := PrivateFolder.open(path)) is None:
                    raise
                self._folder = opened
        self.lost_ns = int(lost_seconds * clock.NANOSECONDS)
        threading.Thread(target=self._kill_requested, name="kills", daemon=True).start()

    def probe(self, package: str, modules: Sequence[str]) -> dict[str, Any]:
        """Return what is installed: the versions of Python and of a package, tuneoff's code, which modules are missing, the
        versions of the others; and the `place`: kernel and namespace of process ids."""
        return {
            "place": [clock.boot_id(), os.readlink("/proc/self/ns/pid")],
            "Python": platform.python_version(),
            package: installed_version(package) or "none",
            "tuneoff's code": code_digest()[:12],
            "missing modules": missing_modules(tuple(modules)),
            "the workload's packages": module_versions(modules),
        }

    def share(self, folder: str, name: str) -> dict[str, Any]:
        """Return what this host sees of a folder: the content of a file and who has locked it; rename that file."""
        path = Path(folder) / name
        try:
            content = path.read_text()
            with path.open("a") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    is_locked = False
                except BlockingIOError:
                    is_locked = True
            os.replace(path, path.with_suffix(".renamed"))
        except OSError as error:
            return {"problem": f"{error.strerror}: {error.filename or path}"}
        return {"content": content, "is_locked": is_locked}

    def beat(self) -> dict[str, Any]:
        """Return this host's clocks. Touches no file of the run: a stalled file system is not a lost host."""
        anchor = clock.anchor()
        return {"boot_id": clock.boot_id(), "monotonic_ns": anchor.monotonic_ns, "wall_ns": anchor.wall_ns}

    def note_clock(self) -> None:
        """Write this host into the events, with the alignment that was measured."""
        EventWriter(self._run_dir, self._execution_id, "host").close()

    def run(self, command: Sequence[str], environment: Mapping[str, str], seconds: float) -> dict[str, Any]:
        """Run a command to its end; what it starts in the background carries the run's mark."""
        marked = {**os.environ, **environment, MARK: self._execution_id}
        try:
            ended = run_to_end(command, seconds, environment=marked)
        except TimeoutError as error:
            return {"code": None, "output": str(error)}
        return {"code": ended.code, "output": ended.output + ended.errors}

    def clean(self, besides: str | None = None) -> list[str]:
        """End all of the run on this host, remove its folder, and return what is still there; not under boot id `besides`."""
        if not self._execution_id or clock.boot_id() == besides:
            return []
        return clean(self._execution_id, self._folder)

    def _kill_requested(self) -> None:
        """Kill the processes here that the supervisor asks for, and tell it which have too much memory.

        The shared folder may stall for as long as it wants.
        """
        while True:
            with contextlib.suppress(OSError, ResultsError):
                for request in asked_kills(self._run_dir, clock.boot_id()):
                    if is_alive(request.pid, request.started_ns):
                        stop([request.pid])
                        if begun_attempt(self._run_dir / EVENTS, request.pid, clock.boot_id()) == request.attempt:
                            kill_tree(request.pid)
                        else:  # it ended as the request came, and the process may be at another trial
                            kill(request.pid, signal.SIGCONT)
                    request.path.unlink()
                for watched in watched_memory(self._run_dir, clock.boot_id()):
                    if is_alive(watched.pid, watched.started_ns):  # else it is another container's on this kernel, or gone
                        has_more = has_more_memory(watched.pid, watched.limit_bytes)
                        watched.over.write_text(watched.request if has_more else "")
            time.sleep(LOOK_SECONDS)


class AgentLine(Protocol):
    """Where an agent hears requests, and answers: JSON texts."""

    def requests(self, seconds: float) -> Sequence[bytes] | None:
        """Return those that arrived, after at most so many seconds; None: nothing more can come."""

    def answer(self, reply: bytes) -> None: ...


class Streams:
    """Standard input and output; what else would go to standard output goes to standard error."""

    def __init__(self) -> None:
        self._output, self._rest = os.dup(1), b""
        os.dup2(2, 1)

    def requests(self, seconds: float) -> Sequence[bytes] | None:
        if not select.select([0], [], [], seconds)[0]:
            return ()
        if not (data := os.read(0, 65_536)):
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines

    def answer(self, reply: bytes) -> None:
        os.write(self._output, b"\n" + reply + b"\n")  # a greeting of the host's shell may have no line end


def serve(agent: Agent, line: AgentLine) -> None:
    """Serve until nothing more can come, or nothing came for too long; then clean."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    lock, heard_ns = threading.Lock(), clock.monotonic_ns()

    def answer(request: dict[str, Any]) -> None:
        reply: dict[str, Any] = {"n": request["n"]}
        try:
            reply["answer"] = getattr(agent, request["do"])(**request["with"])
        except Exception as error:  # the coordinator names the host and the step
            reply["error"] = str(error) if isinstance(error, TuneoffError) else f"{type(error).__name__}: {error}"
        with lock, contextlib.suppress(OSError):
            line.answer(json.dumps(reply).encode())

    while clock.monotonic_ns() - heard_ns < agent.lost_ns:
        if (requests := line.requests(LOOK_SECONDS)) is None:
            break
        for request in map(json.loads, requests):
            heard_ns = clock.monotonic_ns()
            if request["do"] == "beat":  # at once: its time counts
                answer(request)
            else:
                threading.Thread(target=answer, args=(request,), daemon=True).start()
    agent.clean()
    os._exit(0)  # a command that still runs was ended


if __name__ == "__main__":
    serve(Agent(), Streams())
