"""Builds event logs in seconds, without processes or clocks, and the two worked examples that serve as oracles."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from builders.specs import make_spec
from tuneoff.base.identity import configuration_digest
from tuneoff.experiment.spec import Failures, RunSpec, Workers
from tuneoff.record.derive import derive
from tuneoff.record.events import schema
from tuneoff.record.events.schema import Event, Process
from tuneoff.record.run_record import RunRecord

SECOND = 1_000_000_000
BOOT = "boot-1"
T0 = 1000 * SECOND  # the monotonic reading at second 0 of a log


def ns(seconds: float) -> int:
    return round(seconds * SECOND)


class Writer:
    """One process's events; times are seconds on the log's scale."""

    def __init__(self, role: str, pid: int, started: float, host: str, boot: str, clock_shift: float, execution: str) -> None:
        self.shift = T0 + ns(clock_shift)
        self.role = role
        self.events: list[Event] = []
        self.process = Process(
            seq=0,
            t=ns(started) + self.shift,
            version=schema.SCHEMA_VERSION,
            role=role,
            pid=pid,
            host=host,
            boot_id=boot,
            execution_id=execution,
            anchor_monotonic_ns=ns(started) + self.shift,
            anchor_wall_ns=1_700_000_000 * SECOND + ns(started),
            anchor_width_ns=400,
            process_started_ns=ns(started) + self.shift,
        )
        self.events.append(self.process)

    def add(self, kind: type[Event], at: float, **fields: Any) -> None:
        self.events.append(kind(seq=len(self.events), t=ns(at) + self.shift, **fields))

    def start(
        self,
        trial: str,
        at: float,
        slot: int,
        attempt: int = 1,
        imported: float | None = None,
        x: float = 0.5,
        process_cpu: float | None = None,
        visible: int | None = None,
    ) -> None:
        self.add(
            schema.TrialStarted,
            at,
            trial=trial,
            attempt=attempt,
            slot=slot,
            configuration={"x": x},
            digest=configuration_digest({"x": x}),
            seed=1,
            threads=1,
            imported_ns=None if imported is None else ns(imported) + self.shift,
            process_cpu_ns=None if process_cpu is None else ns(process_cpu),
            visible=None if visible is None else str(visible),
        )

    def epoch(
        self,
        trial: str,
        epoch: int,
        at: float,
        value: float | None = 0.5,
        *,
        reported: float | None,
        stop: bool = False,
        cpu: float | None = None,
        reported_cpu: float | None = None,
        **more: Any,
    ) -> None:
        fields: dict[str, Any] = {"train_ns": 0, "validate_ns": 0, "metrics": {"validation_accuracy": value}, **more}
        self.add(schema.Epoch, at, trial=trial, epoch=epoch, cpu_ns=None if cpu is None else ns(cpu), **fields)
        if reported is not None:
            used = None if reported_cpu is None else ns(reported_cpu)
            attempt = fields.get("attempt", 1)
            self.add(schema.Reported, reported, trial=trial, epoch=epoch, stop=stop, attempt=attempt, cpu_ns=used)

    def end(self, trial: str, at: float, state: schema.EndState, epochs: int, *, cpu: float | None = None, **more: Any) -> None:
        used = None if cpu is None else ns(cpu)
        self.add(schema.TrialEnded, at, trial=trial, state=state, epochs=epochs, cpu_ns=used, **more)

    def exit(self, at: float, by: Writer) -> None:
        """Another process sees that this one is gone."""
        by.add(schema.ProcessExited, at, process=self.process.name)


class Log:
    """A run's event files."""

    def __init__(self, execution: str = "run1-abc") -> None:
        self.execution = execution
        self.writers: list[Writer] = []
        self.coordinator = self.process("coordinator", -1.0)

    def process(
        self, role: str, started: float, *, host: str = "h", boot: str = BOOT, clock_shift: float = 0.0, pid: int | None = None
    ) -> Writer:
        writer = Writer(role, pid or 100 + len(self.writers), started, host, boot, clock_shift, self.execution)
        self.writers.append(writer)
        return writer

    def step(self, name: schema.Step, start: float, end: float | None, **more: Any) -> None:
        self.coordinator.add(schema.StepStarted, start, step=name)
        if end is not None:
            self.coordinator.add(schema.StepEnded, end, step=name, **more)

    def submit(self, trial: str, at: float, attempt: int = 1, x: float = 0.5) -> None:
        self.coordinator.add(schema.TrialSubmitted, at, trial=trial, attempt=attempt, configuration={"x": x})

    def pairs(self, order: Iterable[int] | None = None) -> list[tuple[Process, Event]]:
        writers = self.writers if order is None else [self.writers[index] for index in order]
        return [(writer.process, event) for writer in writers for event in writer.events]

    def save(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for writer in self.writers:
            path = folder / f"{writer.role}-{writer.process.pid}-{writer.process.t}.jsonl"
            path.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in writer.events))
        return folder


def example_a() -> tuple[Log, RunSpec]:
    """Worked example A: two long-lived workers that use a processor each while they train, no overhead, one trial pruned."""
    log = Log()
    log.step("deploy", 0, 10)
    log.step("setup", 10, 11)
    log.step("trial", 11, 163)
    for trial, at in (("1", 12.0), ("2", 12.0), ("3", 112.0)):
        log.submit(trial, at, x=float(trial) / 10)
    first, second = log.process("worker", 12), log.process("worker", 12)
    first.start("1", 12, slot=0, x=0.1, process_cpu=0)
    for epoch in range(1, 5):
        used = 25.0 * epoch
        first.epoch("1", epoch, 12 + used, [0.5, 0.9, 0.8, 0.95][epoch - 1], reported=12 + used, cpu=used, reported_cpu=used)
    first.end("1", 112, "completed", 4, cpu=100)
    second.start("2", 12, slot=1, x=0.2, process_cpu=0)
    for epoch in range(1, 5):
        used = 15.0 * epoch
        second.epoch("2", epoch, 12 + used, 0.6 + epoch / 100, reported=12 + used, cpu=used, reported_cpu=used)
    second.end("2", 72, "completed", 4, cpu=60)
    first.start("3", 112, slot=0, x=0.3, process_cpu=100)
    for epoch in range(1, 3):
        used = 25.0 * epoch
        first.epoch("3", epoch, 112 + used, 0.1, reported=112 + used, stop=epoch == 2, cpu=used, reported_cpu=used)
    first.end("3", 162, "pruned", 2, cpu=50)
    log.step("collect", 163, 164)
    log.coordinator.add(schema.BestKnown, 164, trial="1", value=0.95)
    log.step("test", 164, 170)
    log.coordinator.add(schema.Tested, 169, trial="1", scores={"test_accuracy": 0.93})
    log.step("metrics", 170, 171)
    log.step("undeploy", 171, 176)
    return log, make_spec(trials=3)


def example_b() -> tuple[Log, RunSpec]:
    """Worked example B: a process per trial, a failure and its retry, a late stop by kill, CPU readings in every process."""
    log = Log()
    log.step("deploy", 0, 5)
    log.step("setup", 5, 5.5)
    log.step("trial", 5.5, 43)
    log.coordinator.add(schema.Stage, 6, name="ask", duration_ns=ns(0.01))
    log.submit("1", 6, x=0.1)
    log.submit("2", 6, x=0.2)
    log.submit("2", 10, attempt=2, x=0.2)
    log.submit("3", 30, x=0.3)
    one = log.process("trial", 6)
    one.start("1", 8, slot=0, imported=7.5, x=0.1, process_cpu=1.0)
    for epoch in range(1, 5):
        used = 4.3 * epoch  # 4.25 busy, 0.05 while it waits in report
        at = 8 + 5 * epoch
        told: dict[str, Any] = {"train_ns": ns(4), "items": 100 * epoch, "phases": {"forward": ns(1), "other": ns(2)}}
        one.epoch("1", epoch, at - 0.5, 0.7 + epoch / 100, reported=at, cpu=used - 0.05, reported_cpu=used, **told)
    one.end("1", 28, "completed", 4, cpu=17.2)
    failed = log.process("trial", 6)
    failed.start("2", 8, slot=1, imported=7, x=0.2, process_cpu=1.0)
    failed.end("2", 9, "failed", 0, cpu=0.5, cause="OSError: load", charged="infrastructure")
    retried = log.process("trial", 10)
    retried.start("2", 12, slot=1, attempt=2, imported=11, x=0.2, process_cpu=1.2)
    for epoch in range(1, 5):
        at, used = 12 + 5 * epoch, 4.75 * epoch
        retried.epoch("2", epoch, at, 0.6, reported=at, attempt=2, cpu=used, reported_cpu=used)
    retried.end("2", 32, "completed", 4, attempt=2, cpu=19.0)
    late = log.process("trial", 30)
    late.start("3", 32, slot=0, imported=31, x=0.3, process_cpu=1.5)
    late.epoch("3", 1, 36, 0.2, reported=36, cpu=4, reported_cpu=4)
    late.epoch("3", 2, 40, 0.2, reported=40, cpu=8, reported_cpu=8)
    coordinator = log.coordinator
    coordinator.add(schema.StopDecided, 40, trial="3", epoch=2)
    coordinator.add(schema.TrialEnded, 43, trial="3", state="pruned", epochs=2, by="coordinator")
    for process, at in ((one, 29), (failed, 9), (retried, 33), (late, 43)):
        process.exit(at, by=coordinator)
    log.step("collect", 43, 44)
    coordinator.add(schema.BestKnown, 44, trial="1", value=0.74)
    log.step("test", 44, 48)
    coordinator.add(schema.Tested, 47, trial="1", scores={"test_accuracy": 0.75}, cpu_ns=ns(2))
    log.step("metrics", 48, 49)
    log.step("undeploy", 49, 52)
    return log, make_spec(trials=3, workers=Workers(count=2, memory_mb=2000), failures=Failures(retries=1))


def example_c() -> tuple[Log, RunSpec]:
    """Worked example C: a process per trial, two import at a time, and both trials of a pair could fit on one slot."""
    log = Log()
    log.step("deploy", 0, 10)
    log.step("setup", 10, 10.5)
    log.step("trial", 10.5, 29)
    first = ((11, 18, 18, 18.1, 19, 0), (12, 18.5, 18.5, 18.6, 19.5, 1))
    _processes_of_one_trial(log, (*first, (19.2, 26, 26, 26.1, 27, 0), (20, 26.4, 26.4, 26.5, 27.5, 1)))
    log.step("collect", 29, 30)
    log.coordinator.add(schema.BestKnown, 30, trial="1")
    log.step("undeploy", 31, 32)
    return log, make_spec(trials=4, epochs=1)


@functools.cache
def run_a() -> RunRecord:
    """Return the record that the events of example A give."""
    log, spec = example_a()
    return derive(log.pairs(), spec)


@functools.cache
def run_b() -> RunRecord:
    """Return the record that the events of example B give."""
    log, spec = example_b()
    return derive(log.pairs(), spec)


def example_c_of_one_slot(role: str = "trial") -> tuple[Log, RunSpec]:
    """The last paragraph of worked example C: the second process imports while the first one runs its trial and exits."""
    log = Log()
    log.step("deploy", -0.5, 0)
    _processes_of_one_trial(log, ((0, 4, 4, 9, 10, 0), (8, 11, 11, 14, 15, 0)), role)
    log.step("collect", 15, 16)
    log.coordinator.add(schema.BestKnown, 16, trial="1")
    log.step("undeploy", 17, 18)
    return log, make_spec(trials=2, epochs=1, workers=Workers(count=1))


def _processes_of_one_trial(log: Log, rows: Iterable[tuple[float, float, float, float, float, int]], role: str = "trial") -> None:
    """Add processes by kernel start (and submission), imports done, attempt's start and end, exit, slot."""
    for number, (started, imported, begun, ended, gone, slot) in enumerate(rows, 1):
        log.submit(str(number), started, x=number / 10)
        process = log.process(role, started)
        process.start(str(number), begun, slot=slot, imported=imported, x=number / 10)
        process.epoch(str(number), 1, ended, 1 - number / 10, reported=ended)
        process.end(str(number), ended, "completed", 1)
        process.exit(gone, by=log.coordinator)
