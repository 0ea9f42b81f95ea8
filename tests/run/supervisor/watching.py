"""A watch over one trial, without a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from builders.specs import CURVE, make_experiment
from tuneoff.base import clock
from tuneoff.base.processes import process_started_ns
from tuneoff.experiment.spec import (
    ExperimentSpec,
    Failures,
    Objective,
    RunSpec,
    Timeouts,
    Workers,
)
from tuneoff.record.events.writer import EventWriter
from tuneoff.run.progress import OpenAttempt, Tracker
from tuneoff.run.supervisor.execution import Execution
from tuneoff.run.supervisor.watch import TrialWatch


def experiment(*, retries: int = 0, **timeouts: float) -> ExperimentSpec:
    objective, timed = Objective(metric="loss", mode="min"), Timeouts(**timeouts)
    return make_experiment(
        workload=CURVE,
        objective=objective,
        trials=4,
        epochs=3,
        workers=Workers(count=1),
        timeouts=timed,
        failures=Failures(retries=retries),
    )


def watched(
    tmp_path: Path,
    pid: int,
    *,
    memory: int | None = None,
    cgroups: Sequence[str] = (),
    ended_since: bool = False,
    retries: int = 0,
    **timeouts: float,
) -> tuple[TrialWatch, Tracker]:
    spec = experiment(retries=retries, **timeouts)
    run = RunSpec(experiment=spec, adapter="serial", adapter_target="x:Y")
    execution = Execution(spec=run, execution_id="e", folder=tmp_path)
    writer = EventWriter(tmp_path, "e", "supervisor")
    tracker = Tracker(experiment=spec, run_id="r")
    now = clock.monotonic_ns()
    tracker.open["t0", 1] = OpenAttempt(
        trial="t0",
        attempt=1,
        pid=pid,
        process_started_ns=process_started_ns(pid),
        started_ns=now - 10_000_000_000,
        last_event_ns=now - 5_000_000_000,
        slot=0,
        boot_id=clock.boot_id(),
    )
    take_events = tracker.open.clear if ended_since else lambda: None
    return TrialWatch(execution, writer, memory, list(cgroups), tracker, take_events), tracker
