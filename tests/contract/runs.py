"""Single supervised runs on synthetic workloads, looked at from outside while they last; whole adapters: `tuneoff check`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneoff.base.space import Float, IntegerLog, SearchSpace, stepped
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
from tuneoff.experiment.strategies import sample_distinct
from tuneoff.record.events import schema
from tuneoff.record.events.reader import EventLog
from tuneoff.record.run_record import RunRecord
from tuneoff.registry import adapter_class, workload_class
from tuneoff.run.finish import finish
from tuneoff.run.progress import LiveRun
from tuneoff.run.supervisor.leftovers import remembered
from tuneoff.run.supervisor.limits import ReservedProcessors, reserve_processors
from tuneoff.run.supervisor.run import RunRequest, supervise
from tuneoff.trust.check.footprint import Footprint, ListeningSocket, left_since
from tuneoff.trust.check.one_run import OutsideObserver

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
    listeners: frozenset[ListeningSocket] = frozenset()
    left: tuple[str, ...] = ()

    def events(self, kind: type[schema.Event] = schema.Event) -> list[Any]:
        return [event for _, event in EventLog(self.folder / "events").merged() if isinstance(event, kind)]


def a_pod_trains(folder: Path) -> bool:
    """Tell whether a pod of a run has told of an epoch."""
    return any(b'"epoch"' in path.read_bytes() for path in folder.glob("*/events/pod-*"))


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
    platform: str = "local",
    options: Mapping[str, Any] | None = None,
) -> Made:
    """Run `spec` under supervision and return what came of it."""
    cls = adapter_class(adapter)
    target = f"{cls.__module__}:{cls.__qualname__}"
    run = RunSpec(experiment=spec, adapter=adapter, adapter_target=target, platform=platform, seed=seed, options=options or {})
    before = Footprint.now()
    watcher = OutsideObserver(None if act is None else lambda live: act(live, results / "runs" / run.run_id))
    with ReservedProcessors() as reserved:
        processors = reserve_processors([run], reserved)
        interrupt = interrupt or threading.Event()
        request = RunRequest(spec=run, results=results, listener=watcher, interrupt=interrupt, processors=processors)
        ended = supervise(request)
    execution = ended.execution
    left = [f"{item.kind} {item.text}" for item in left_since(before, execution.execution_id, watcher.seen)]
    left += [f"{kind} {path}" for kind, path in remembered(execution.folder) if os.path.exists(path)]
    record = finish(execution.folder, run, ended.ruling, cls, {"limits": dict(ended.limits)})
    return Made(record=record, folder=execution.folder, listeners=frozenset(watcher.seen.listeners), left=tuple(left))
