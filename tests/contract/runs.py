"""The handful of real runs that the contract tests of an adapter read. Each is made once per adapter."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuneoff.events import schema
from tuneoff.events.reader import EventLog
from tuneoff.experiment.sampling import sample_distinct
from tuneoff.experiment.space import Float, IntegerLog, SearchSpace, stepped
from tuneoff.experiment.spec import (
    Budget,
    ExperimentSpec,
    Failures,
    Objective,
    RunSpec,
    Strategy,
    Timeouts,
    Workers,
    WorkloadSpec,
)
from tuneoff.matrix.finish import finish
from tuneoff.matrix.listener import LiveRun, Silent
from tuneoff.records.model import RunRecord
from tuneoff.registry import adapter_class, workload_class
from tuneoff.supervisor.leftovers import shared_memory, unmapped
from tuneoff.supervisor.processes import with_mark
from tuneoff.supervisor.run import supervise

SPACE = SearchSpace(
    {
        "learning_rate": Float(low=1e-4, high=1.0, log=True),
        "hidden_width": IntegerLog(low=4, high=64),
        "dropout": stepped(0.0, 0.5, 0.1, integer=False),
    }
)


@dataclass(frozen=True)
class Made:
    """One finished run: its record, folder, and what was seen from outside while it ran."""

    record: RunRecord
    folder: Path
    listening: frozenset[str] = frozenset()
    left: tuple[str, ...] = ()

    def events(self, kind: type[schema.Event] = schema.Event) -> list[Any]:
        return [event for _, event in EventLog(self.folder / "events").merged() if isinstance(event, kind)]


@dataclass
class Watcher(Silent):
    """A listener that looks at the run from outside, and may act once."""

    mark: str = ""
    listening: set[str] = field(default_factory=set)
    act: Callable[[LiveRun, Path], bool] | None = None
    folder: Path | None = None

    def run_progress(self, live: LiveRun) -> None:
        if self.folder is not None and live.step == "trial":
            self.listening |= listening_addresses(live.run_id)
        if self.act is not None and self.folder is not None and self.act(live, self.folder):
            self.act = None


def experiment(workload: str, options: dict[str, Any] | None = None, **changes: Any) -> ExperimentSpec:
    """Return a small experiment on one of tuneoff's synthetic workloads."""
    cls = workload_class(workload)
    module = f"{cls.__module__}:{cls.__qualname__}"
    metric = cls.default_metric
    defaults: dict[str, Any] = {
        "workload": WorkloadSpec(name=workload, target=module, options=options or {}),
        "search_space": SPACE,
        "objective": Objective(metric=metric, mode=cls.metrics[metric]),
        "sampler": Strategy(name="random"),
        "pruner": Strategy(name="none"),
        "budget": Budget(trials=8, epochs_per_trial=3),
        "workers": Workers(count=2),
        "timeouts": Timeouts(trial_seconds=60, silence_seconds=30),
        "failures": Failures(),
    }
    return ExperimentSpec(**{**defaults, **changes})


def fixed(count: int, seed: int = 5) -> dict[str, Any]:
    """Return the changes that make an experiment evaluate `count` given configurations."""
    configurations = tuple(sample_distinct(SPACE, count, seed))
    return {"sampler": Strategy(name="fixed"), "configurations": configurations}


def make(
    adapter: str,
    spec: ExperimentSpec,
    results: Path,
    *,
    act: Callable[[LiveRun, Path], bool] | None = None,
    interrupt: threading.Event | None = None,
    seed: int = 0,
) -> Made:
    """Run `spec` under supervision and return what came of it."""
    cls = adapter_class(adapter)
    run = RunSpec(experiment=spec, adapter=adapter, adapter_target=f"{cls.__module__}:{cls.__qualname__}", seed=seed)
    home, shared = names(Path.home()), shared_memory()
    watcher = Watcher(act=act, folder=results / "runs" / run.run_id)
    ended = supervise(run, results, watcher, interrupt or threading.Event())
    execution = ended.execution
    left = [f"process {pid}" for pid in with_mark("TUNEOFF_RUN_ID", execution.execution_id)]
    left += [f"home/{name}" for name in names(Path.home()) - home]
    left += [f"shm/{name}" for name in forgotten_memory(shared)]
    left += [f"tmp/{name}" for name in names(Path("/tmp")) if execution.execution_id[-6:] in name]
    record = finish(execution.folder, run, ended.verdict, cls, {"limits": dict(ended.limits)})
    return Made(record=record, folder=execution.folder, listening=frozenset(watcher.listening), left=tuple(left))


def forgotten_memory(before: set[str]) -> set[str]:
    """Return shared memory that is new, used by nobody, and still there after a moment: others on the machine make some too."""
    deadline = time.monotonic() + 2
    while (new := unmapped(shared_memory() - before)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return new


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def kill_one_trial(live: LiveRun, folder: Path) -> bool:
    """SIGKILL the process of the first trial that is seen running; tell whether that was done."""
    for events in folder.glob("*/events"):
        running: dict[str, int] = {}
        for process, event in EventLog(events):
            if isinstance(event, schema.Epoch):
                running[event.trial] = process.pid
            elif isinstance(event, schema.TrialEnded):
                running.pop(event.trial, None)
        for pid in running.values():
            os.kill(pid, signal.SIGKILL)
            return True
    return False


def listening_addresses(run_id: str) -> set[str]:
    """Return the local addresses on which processes of a run listen (TCP), as hexadecimal text of /proc/net."""
    sockets = set()
    for pid in _processes_of(run_id):
        try:
            for entry in os.scandir(f"/proc/{pid}/fd"):
                target = os.readlink(entry.path)
                if target.startswith("socket:["):
                    sockets.add(target[8:-1])
        except OSError:  # it ended meanwhile
            continue
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in sockets:
                found.add(fields[1].partition(":")[0])
    return found


def _processes_of(run_id: str) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            environment = Path(f"/proc/{name}/environ").read_bytes()
        except OSError:
            continue
        if f"TUNEOFF_RUN_ID={run_id}-".encode() in environment:
            found.append(int(name))
    return found


LOOPBACK = ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")
