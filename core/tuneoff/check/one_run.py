"""`python -m tuneoff.check.one_run REQUEST.json`: the process that makes one run and looks at it from outside.

Beside the request it writes `answer.json`: the folder of the execution, what listened, what was left, how long it took to end.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tuneoff.check.footprint import Footprint, Left, left_since
from tuneoff.check.listeners import Listener, listeners_of
from tuneoff.errors import TuneoffError
from tuneoff.events.reader import EventLog
from tuneoff.experiment.spec import run_spec_from_json
from tuneoff.lifecycle.context import MARK
from tuneoff.matrix.finish import finish
from tuneoff.matrix.listener import LiveRun, Silent
from tuneoff.supervisor import controllers
from tuneoff.supervisor.guardian import Guardian
from tuneoff.supervisor.leftovers import left_outside, remembered
from tuneoff.supervisor.processes import all_pids, become_subreaper
from tuneoff.supervisor.run import supervise
from tuneoff.trial.context import load_target
from tuneoff.trial.limits import die_with_parent

ANSWER = "answer.json"
LOOK_SECONDS = 0.3
BUSY = "while True: pass"


@dataclass
class Watcher(Silent):
    """A listener that looks at the run from outside, and may act once."""

    folder: Path  # of the run's executions
    act: str | None
    interrupt: threading.Event
    listeners: dict[Listener, int] = field(default_factory=dict)  # with the process that held it
    looked: float = 0.0
    acted: float | None = None

    def run_progress(self, live: LiveRun) -> None:
        if time.monotonic() - self.looked > LOOK_SECONDS:
            for pid in processes_of(live.run_id):
                self.listeners.update(dict.fromkeys(listeners_of([pid]), pid))
            self.looked = time.monotonic()
        if self.act is not None and self.acted is None and live.completed >= 1:
            self._do(self.act)

    def _do(self, act: str) -> None:
        if act == "interrupt":
            self.interrupt.set()
        else:
            pid = self._coordinator()
            if pid is None:
                return
            os.kill(pid, signal.SIGKILL)
        self.acted = time.monotonic()

    def _coordinator(self) -> int | None:
        for events in self.folder.glob("*/events"):
            for process, _ in EventLog(events):
                if process.role == "coordinator":
                    return process.pid
        return None


def main(path: Path) -> None:
    die_with_parent()
    request = json.loads(path.read_text())
    run = run_spec_from_json(request["run"])
    results = Path(request["results"])
    results.mkdir(parents=True, exist_ok=True)
    if request["without_groups"]:
        controllers.ROOT = Path("/nonexistent")
    become_subreaper()
    interrupt, was_told = threading.Event(), threading.Event()

    def tell(*_: object) -> None:
        was_told.set()
        interrupt.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, tell)
    watcher = Watcher(folder=results / "runs" / run.run_id, act=request["act"], interrupt=interrupt)
    adapter = load_target(run.adapter_target)
    guardian = Guardian(results)
    before = Footprint.now()
    with _load(os.cpu_count() or 1 if request["is_loaded"] else 0):
        ended = supervise(run, results, watcher, interrupt)
    end_seconds = time.monotonic() - watcher.acted if watcher.acted is not None else None
    execution = ended.execution
    left = left_since(before, execution.execution_id, watcher.listeners)
    left += [Left("temporary file", f"{kind} {value}") for kind, value in remembered(execution.folder) if os.path.exists(value)]
    left += [Left("outside", text) for text in left_outside(execution.folder)]
    problem = ""
    try:
        record = finish(execution.folder, run, ended.verdict, adapter, {"limits": dict(ended.limits)})
        left += _flagged([flag.text for flag in record.flags if flag.name == "left_behind"], watcher.listeners)
    except (TuneoffError, ValueError) as error:
        problem = " ".join(f"{type(error).__name__}: {error}".split())
    guardian.dismiss()
    answer: dict[str, Any] = {
        "folder": str(execution.folder),
        "problem": problem,
        "listeners": [asdict(listener) for listener in watcher.listeners],
        "left": [asdict(item) for item in left],
        "end_seconds": end_seconds,
        "was_interrupted": was_told.is_set(),
    }
    partial = path.with_name(f".{ANSWER}")
    partial.write_text(json.dumps(answer))
    partial.rename(path.with_name(ANSWER))


def _flagged(texts: list[str], listeners: dict[Listener, int]) -> list[Left]:
    """Return what the supervisor had to end or to remove itself; a process that listened is a port that was left."""
    found: list[Left] = []
    for text in texts:
        kind, _, rest = text.partition(" ")
        if kind == "process":
            pid = int(rest.partition(":")[0])
            ports = [f"{item.address}:{item.port}" for item, holder in listeners.items() if holder == pid]
            found.append(Left("port", f"{', '.join(ports)} of {text}") if ports else Left("process", text))
        elif text.startswith("shared memory"):
            found.append(Left("shared memory", text))
        elif kind in ("folder", "cgroup"):
            found.append(Left("temporary file", text))
        else:
            found.append(Left("outside", text))
    return found


@contextlib.contextmanager
def _load(count: int) -> Iterator[None]:
    """Keep so many processors busy with processes that are none of the run's."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY], preexec_fn=die_with_parent) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def processes_of(run_id: str) -> list[int]:
    """Return the processes of any execution of a run."""
    found = []
    for pid in all_pids():
        with contextlib.suppress(OSError):
            if f"{MARK}={run_id}-".encode() in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
