"""`python -m tuneoff.trust.check.one_run REQUEST.json`: the process that makes one run and looks at it from outside.

The record is derived by who asked: what that imports would cost every run some tenths of a second.

Its parent, which calls `ask_run`, passes on the signals that end a check.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tuneoff.base.layout import EVENTS, RUNS
from tuneoff.base.process_limits import die_with_parent
from tuneoff.base.processes import MARK, become_subreaper, kill, with_mark
from tuneoff.errors import TuneoffError
from tuneoff.experiment.spec import run_spec_from_json
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import Flag
from tuneoff.run.child import answer_request, ask
from tuneoff.run.progress import Listener, LiveRun
from tuneoff.run.supervisor import cgroups
from tuneoff.run.supervisor.guardian import Guardian
from tuneoff.run.supervisor.leftovers import left_outside, remembered
from tuneoff.run.supervisor.run import RunRequest, supervise
from tuneoff.trust.check.footprint import Footprint, Leftover, OwnFolders, RunTraces, left_since

RUN_SECONDS = 600.0  # a run that takes longer has lost its own supervisor
LOOK_SECONDS = 0.3
BUSY = "while True: pass"


def ask_run(
    interrupt: threading.Event, module: str, folder: Path, request: Mapping[str, Any], seconds: float = RUN_SECONDS
) -> Any:
    """Run a module on a request in `folder` and return its answer; a text says why there is none.

    Once `asked` is set, the process has a SIGTERM: it un-deploys its run and ends. None begins then.
    """
    if interrupt.is_set():
        return "interrupted"
    signalled: list[int] = []

    def pass_on(pid: int) -> None:
        if interrupt.is_set() and not signalled:
            signalled.append(pid)
            kill(pid, signal.SIGTERM)

    answer, end = ask(module, folder, request, seconds, look=pass_on)
    if end.code is None:
        return f"it took longer than {seconds:g} s"
    return f"its process {end.text}" if answer is None else answer


@dataclass
class OutsideObserver(Listener):
    """A listener that looks at the run from outside, and calls `act` until that has acted."""

    act: Callable[[LiveRun], bool] | None
    seen: RunTraces = field(default_factory=RunTraces)
    looked: float = 0.0
    acted: float | None = None

    def run_progress(self, live: LiveRun) -> None:
        if time.monotonic() - self.looked > LOOK_SECONDS:
            self.seen.look(processes_of(live.run_id))
            self.looked = time.monotonic()
        if self.act is not None and self.acted is None and self.act(live):
            self.acted = time.monotonic()


def make_run(request: dict[str, Any]) -> dict[str, Any]:
    """Make the run that is asked for, and return its folder, what listened, what was left, how long it took to end."""
    run = run_spec_from_json(request["run"])
    results = Path(request["results"])
    results.mkdir(parents=True, exist_ok=True)
    if request["without_groups"]:
        cgroups.ROOT = Path("/nonexistent")
    become_subreaper()
    interrupt = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda signum, frame: interrupt.set())

    def act(live: LiveRun) -> bool:
        if live.completed < 1:
            return False
        if request["act"] == "interrupt":
            interrupt.set()
            return True
        processes = (process for path in (results / RUNS / run.run_id).glob("*/events") for process, _ in EventLog(path))
        coordinator = next((process for process in processes if process.role == "coordinator"), None)
        if coordinator is not None:
            os.kill(coordinator.pid, signal.SIGKILL)
        return coordinator is not None

    watcher = OutsideObserver(act if request["act"] is not None else None)
    folders = OwnFolders(**request["folders"])
    folders.enter()
    guardian = Guardian(results)
    before = Footprint.now()
    with _load(len(os.sched_getaffinity(0)) if request["is_loaded"] else 0):
        ended = supervise(RunRequest(spec=run, results=results, listener=watcher, interrupt=interrupt))
    end_seconds = time.monotonic() - watcher.acted if watcher.acted is not None else None
    execution = ended.execution
    leftovers = left_since(before, execution.execution_id, watcher.seen)
    leftovers += [
        Leftover("temporary file", f"{kind} {value}") for kind, value in remembered(execution.folder) if os.path.exists(value)
    ]
    leftovers += folders.leftovers()
    leftovers += [Leftover("outside", text) for text in left_outside(execution.folder)]
    with contextlib.suppress(TuneoffError, ValueError):  # events that cannot be read: then there is no record either
        events = [event for _, event in EventLog(execution.folder / EVENTS) if isinstance(event, Flag)]
        leftovers += watcher.seen.flagged(event.text for event in events if event.name == "left_behind")
    guardian.dismiss()
    return {
        "folder": str(execution.folder),
        "ruling": None if ended.ruling is None else asdict(ended.ruling),
        "limits": dict(ended.limits),
        "listeners": [asdict(listener) for listener in watcher.seen.listeners],
        "left": [asdict(item) for item in leftovers],
        "end_seconds": end_seconds,
    }


@contextlib.contextmanager
def _load(count: int) -> Iterator[None]:
    """Keep so many processors, those that this process may use, busy with processes that are none of the run's."""
    die = functools.partial(die_with_parent, parent=os.getpid())
    processes = [subprocess.Popen([sys.executable, "-c", BUSY], preexec_fn=die) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def processes_of(run_id: str) -> list[int]:
    """Return the processes of any execution of a run."""
    return with_mark(MARK, f"{run_id}-", is_prefix=True)


if __name__ == "__main__":
    answer_request(make_run)
