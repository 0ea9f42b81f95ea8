"""A results folder with many equal runs, as a matrix would have left them: events, samples, prices, records, plan."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from benchmarks.speed.specs import make_spec
from benchmarks.speed.synthetic_log import EXECUTION, MILLISECOND, WORKERS, events_per_trial, write_log
from tuneoff.base import clock
from tuneoff.base.layout import EVENTS, PLAN, RUNS, SAMPLES
from tuneoff.experiment.accounting.declared import Accounting, Intensity, Prices, write_accounting
from tuneoff.experiment.plan import Plan, PlannedRun
from tuneoff.experiment.spec import RunSpec, run_spec_to_json
from tuneoff.measure.derived import derive_folder
from tuneoff.record.end import ExecutionEnd, key_of, seal, write_end
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import Process
from tuneoff.record.samples.schema import SCHEMA_VERSION, Coefficients, Header, ProcessUsage, UsageSample
from tuneoff.record.store import write_run

SAMPLES_PER_RUN = 300  # per run: a minute at the sampler's default rate
_encode = msgspec.json.Encoder().encode


def write_results(path: Path, runs: int, trials: int, epochs: int, adapters: Sequence[str] = ("serial",)) -> int:
    """Write the folder, and return its size in bytes. The runs differ by seed and adapter alone; the first one is derived."""
    cells = [divmod(number, len(adapters)) for number in range(runs)]
    specs = [make_spec(adapters[adapter_index], "null", trials=trials, epochs=epochs, seed=seed) for seed, adapter_index in cells]
    planned = [PlannedRun(run_id=spec.run_id, spec=spec, label=spec.adapter, block=spec.seed) for spec in specs]
    plan = Plan(name="synthetic", path="synthetic.yaml", runs=tuple(planned))
    path.mkdir(parents=True)
    (path / PLAN).write_text(json.dumps(plan.to_json()))
    first = path / RUNS / specs[0].run_id / EXECUTION
    write_log(first / EVENTS, trials * events_per_trial(epochs), epochs)
    _write_samples(first)
    _write_accounting(first)
    end = ExecutionEnd(environment={"analysis_digest": plan.analysis_digest})
    record = derive_folder(first, specs[0], end).record
    for spec in specs:
        folder = path / RUNS / spec.run_id / EXECUTION
        if folder != first:
            shutil.copytree(first, folder)
    for spec in specs:
        folder = path / RUNS / spec.run_id / EXECUTION
        (folder / "spec.json").write_text(json.dumps(_inputs(spec)))
        sealed = ExecutionEnd(environment=end.environment, sealed=seal(folder))
        changed = replace(record, run_id=spec.run_id, specification=run_spec_to_json(spec))
        write_run(folder, changed, key_of(write_end(folder, sealed)))
    return runs * sum(file.stat().st_size for file in first.rglob("*") if file.is_file())


def _inputs(spec: RunSpec) -> dict[str, object]:
    return {"execution_id": EXECUTION, "run_id": spec.run_id, "run": run_spec_to_json(spec)}


def _write_samples(folder: Path) -> None:
    """Write samples of the run's processes by the model meter, evenly over the run."""
    processes: dict[int, Process] = {}
    begin, end = 0, 0
    for process, event in EventLog(folder / EVENTS):
        processes[process.pid] = process
        begin, end = begin or event.t, max(end, event.t)
    lines = [_header(next(iter(processes.values()))), *_usage(list(processes.values()), begin, end)]
    (folder / SAMPLES).write_bytes(b"".join(_encode(line) + b"\n" for line in lines))


def _header(process: Process) -> Header:
    return Header(
        version=SCHEMA_VERSION,
        host=process.host,
        boot_id=process.boot_id,
        execution_id=EXECUTION,
        anchor_monotonic_ns=process.anchor_monotonic_ns,
        anchor_wall_ns=process.anchor_wall_ns,
        anchor_width_ns=process.anchor_width_ns,
        meter="model",
        kind="estimated",
        source="synthetic",
        cpus=WORKERS,
        coefficients=Coefficients(
            joules_per_cpu_second=2.0, watts_per_core=0.7, low=(1.0, 0.2), high=(4.0, 1.5), cpu="synthetic", source="synthetic"
        ),
    )


def _usage(processes: list[Process], begin: int, end: int) -> Iterator[UsageSample]:
    step = max(1, (end - begin) // (SAMPLES_PER_RUN - 2))
    for number in range(SAMPLES_PER_RUN):
        t = begin + (number - 1) * step
        used = number * step
        rows = (
            ProcessUsage(process.pid, process.process_started_ns, 1, used * 9 // 10, 0, 50 * MILLISECOND) for process in processes
        )
        yield UsageSample(t=t, busy_ns=clock.NANOSECONDS + 2 * used, own_cpu_ns=used // 1000, processes=tuple(rows))


def _write_accounting(folder: Path) -> None:
    intensity = Intensity(kind="constant", values=(480.0,), source="synthetic", date="2026")
    prices = Prices(name="synthetic", source="synthetic", date="2026", usd_per_vcpu_hour=0.04, usd_per_gb_hour=0.004)
    write_accounting(folder, Accounting(intensity=intensity, prices=prices))
