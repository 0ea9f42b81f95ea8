"""Results folders as a matrix leaves them half way: a plan, records, and an execution that is under way."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from builders.event_logs import Log
from builders.made_runs import made_run, plan_of, planned_run
from builders.specs import make_spec
from builders.stored import write_run
from tuneoff.base.clock import NANOSECONDS, boot_id, monotonic_ns
from tuneoff.base.layout import LOCK, PLAN, RUNS
from tuneoff.experiment.spec import RunSpec, run_spec_to_json
from tuneoff.record.events.schema import Event
from tuneoff.record.metric_value import metric_value
from tuneoff.record.run_record import RunRecord, RunStatus, StepRecord


class Folder:
    """A results folder: adapters × seeds, in blocks of seeds. `skipped`: an adapter all of whose runs are."""

    def __init__(self, path: Path, adapters: Sequence[str] = ("serial", "optuna"), seeds: int = 3, skipped: str = "") -> None:
        self.path = path
        self.specs = {(adapter, seed): make_spec(adapter=adapter, seed=seed) for seed in range(seeds) for adapter in adapters}
        runs = [
            planned_run(spec, block=seed, skip_reason="not installed" if adapter == skipped else None)
            for (adapter, seed), spec in self.specs.items()
        ]
        self.plan = plan_of(runs, name="digits", path="my files/digits.yaml")
        self._lock: int | None = None
        path.mkdir(parents=True)
        self.write_plan()

    def write_plan(self, **changes: Any) -> None:
        self.plan = replace(self.plan, **changes)
        (self.path / PLAN).write_text(json.dumps(self.plan.to_json()))

    def end(self, adapter: str, seed: int, status: RunStatus = "done", *, execution: str = "1", **changes: Any) -> Path:
        """Add a record; a run took ten seconds."""
        steps = (StepRecord(step="deploy", started_ns=0, ended_ns=10 * NANOSECONDS),)
        reason = None if status == "done" else f"it {status}"
        metrics = {"time.jct_without_test": metric_value(10_000.0, "ms")} if status == "done" else {}
        record = made_run(self.specs[adapter, seed], [], execution=execution, steps=steps)
        return self.write(replace(record, **{"status": status, "reason": reason, "metrics": metrics, **changes}))

    def write(self, record: RunRecord) -> Path:
        folder = self.path / RUNS / record.run_id / record.execution_id
        folder.mkdir(parents=True, exist_ok=True)
        return write_run(folder, record)

    def end_all(self) -> None:
        for adapter, seed in self.specs:
            self.end(adapter, seed)

    def begin(self, adapter: str, seed: int, execution: str = "9", *, host: str | None = None) -> Running:
        """Add an execution that is under way, on this host and boot unless another one is named."""
        spec = self.specs[adapter, seed]
        folder = self.path / RUNS / spec.run_id / f"{spec.run_id}-{execution}"
        return Running(folder, spec, host)

    def take(self, pid: int | None = None) -> None:
        """Write the lock as a command does; by this process, which keeps it open, unless another pid is given."""
        descriptor = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        os.pwrite(descriptor, f"{pid or os.getpid()}\n".encode(), 0)
        if pid is None:
            self._lock = descriptor
        else:
            os.close(descriptor)

    def leave(self, *, ended: bool) -> None:
        """Let go of the lock; `ended`: the command came to its end."""
        assert self._lock is not None
        if ended:
            os.ftruncate(self._lock, 0)
        os.close(self._lock)
        self._lock = None


class Running:
    """An execution that writes its events as it goes. `log.coordinator` and what `log.process` gives take them."""

    def __init__(self, folder: Path, spec: RunSpec, host: str | None) -> None:
        self.folder, self.spec = folder, spec
        self.log = Log(folder.name)
        self._written = 0
        (folder / "events").mkdir(parents=True)
        stored = {"execution_id": folder.name, "run_id": spec.run_id, "run": run_spec_to_json(spec)}
        (folder / "spec.json").write_text(json.dumps(stored))
        now = monotonic_ns()
        first = msgspec.structs.replace(
            self.log.coordinator.process,
            t=now,
            host=host or os.uname().nodename,
            boot_id=boot_id() if host is None else "another",
            pid=os.getpid(),  # or it is taken for one that has ended, and its file for complete
            anchor_monotonic_ns=now,
        )
        self.log.coordinator.process = self.log.coordinator.events[0] = first
        self.log.coordinator.shift = now
        self.path = folder / "events" / "coordinator-100-1.jsonl"

    def lines(self) -> bytes:
        """Return the lines of events that are not yet written."""
        events: list[Event] = self.log.coordinator.events[self._written :]
        self._written += len(events)
        return b"".join(msgspec.json.encode(event) + b"\n" for event in events)

    def write(self, data: bytes | None = None) -> None:
        """Append bytes, by default the lines that are not yet written."""
        with self.path.open("ab") as file:
            file.write(self.lines() if data is None else data)

    def trial(self, name: str, state: Any = "completed", value: float = 0.5) -> None:
        """Add a trial of one epoch and write it."""
        writer = self.log.coordinator
        writer.start(name, 1.0, slot=0)
        writer.epoch(name, 1, 2.0, value, reported=2.0)
        why: dict[str, Any] = {"cause": "oops", "charged": "workload"} if state == "failed" else {}
        writer.end(name, 3.0, state, 1, **why)
        self.write()


def snapshot(path: Path) -> dict[str, tuple[int, int]]:
    """Return size and modification time of all that is in a folder, the folders included."""
    return {str(one): (one.stat().st_size, one.stat().st_mtime_ns) for one in [path, *sorted(path.rglob("*"))]}
