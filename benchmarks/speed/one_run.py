"""One supervised run of tuneoff in a process of its own; prints its figures: `python -m benchmarks.speed.one_run JSON`."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.speed.specs import make_spec
from tuneoff.base.layout import EVENTS
from tuneoff.base.processes import become_subreaper, children, command_line, rss_bytes
from tuneoff.record.events import schema
from tuneoff.record.events.reader import EventLog
from tuneoff.record.run_record import StepRecord
from tuneoff.registry import adapter_class
from tuneoff.run.finish import finish
from tuneoff.run.progress import Listener, LiveRun
from tuneoff.run.supervisor.limits import ReservedProcessors, reserve_processors
from tuneoff.run.supervisor.run import RunRequest, supervise
from tuneoff.workload import workload_at


@dataclass
class MemoryListener(Listener):
    """Notes, several times a second, how many trials have ended and what the two long-lived processes hold in memory."""

    samples: list[tuple[int, int, int]] = field(default_factory=list)  # (trials ended, coordinator, this process) in bytes
    _coordinator: int | None = None

    def run_progress(self, live: LiveRun) -> None:
        if self._coordinator is None:
            pids = [pid for pid in children(os.getpid()) if "tuneoff.run.lifecycle" in command_line(pid)]
            self._coordinator = pids[0] if pids else None
        if self._coordinator is not None and live.step == "trial":
            resident = rss_bytes(self._coordinator)
            if resident:
                self.samples.append((live.ended, resident, rss_bytes(os.getpid())))


def main(arguments: list[str]) -> int:
    order: dict[str, Any] = json.loads(arguments[0])
    results = Path(order.pop("results"))
    spec = make_spec(**order)
    adapter = adapter_class(spec.adapter)
    workload_at(spec.experiment.workload.target)(spec.experiment.workload.options).prepare()
    become_subreaper()
    listener = MemoryListener()
    started = time.monotonic()
    with ReservedProcessors() as reserved:
        processors = reserve_processors([spec], reserved)
        ended = supervise(RunRequest(spec=spec, results=results, listener=listener, processors=processors))
    supervised = time.monotonic()
    record = finish(ended.execution.folder, spec, ended.ruling, adapter, {"limits": dict(ended.limits)})
    finished = time.monotonic()
    if record.status != "done":
        print(f"{spec.adapter}: the run must be done, but is {record.status}: {record.reason}", file=sys.stderr)
        return 1
    print(
        json.dumps(
            {
                "supervise_seconds": supervised - started,
                "finish_seconds": finished - supervised,
                "lifecycle_seconds": _lifecycle_seconds(record.steps),
                "steps_seconds": {step.step: (step.ended_ns - step.started_ns) / 1e9 for step in record.steps if step.ended_ns},
                "memory": listener.samples,
                "overhead_per_trial_ms": record.metrics["overhead.per_trial"].value,
                "cpu_limit": ended.limits.get("cpus"),
                **_from_events(ended.execution.folder),
            }
        )
    )
    return 0


def _lifecycle_seconds(steps: Sequence[StepRecord]) -> float:
    """Return the time from the start of deploy to the end of un-deploy."""
    ends = [step.ended_ns for step in steps if step.ended_ns]
    return (max(ends) - min(step.started_ns for step in steps)) / 1e9


def _from_events(folder: Path) -> dict[str, Any]:
    """Return the span and, per trial in the order of their ends, (worker pid, submitted, started, loaded, ended) in ns."""
    submitted: dict[str, int] = {}
    started: dict[str, int] = {}
    loaded: dict[str, int] = {}
    trials: list[tuple[int, int, int, int, int]] = []
    ends: list[tuple[int, str, int]] = []
    for process, event in EventLog(folder / EVENTS):
        if isinstance(event, schema.TrialSubmitted):
            submitted[event.trial] = event.t
        elif isinstance(event, schema.TrialStarted):
            started[event.trial] = event.t
        elif isinstance(event, schema.TrialLoaded):
            loaded[event.trial] = event.t
        elif isinstance(event, schema.TrialEnded):
            ends.append((event.t, event.trial, process.pid))
    for moment, trial, pid in sorted(ends):
        trials.append((pid, submitted[trial], started[trial], loaded[trial], moment))
    first, last = min(submitted.values()), max(moment for moment, _, _ in ends)
    return {"span_seconds": (last - first) / 1e9, "trials": trials}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
