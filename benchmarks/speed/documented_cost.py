"""What tuneoff tells of a framework over what the framework's own documents cost: the same training, configurations and seeds.

A is a run of `benchmarks/digits.yaml` on a given list by `tuneoff run`: its job time without tuneoff's own test, and the CPU time
of the same. B is a script as the documents show it (`bare/documented`): from before its import of the framework to the end of it,
and the CPU time of all its processes. What lies outside 0.9 to 1.1 has a cause that the adapter's `changed_defaults` name: rows
`as_changed` are over the same script with these changes.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.speed.child import MeasurementError, run_child, run_module
from benchmarks.speed.row import SpeedRow, skipped
from benchmarks.speed.settings import ROOT, Settings
from benchmarks.speed.sides import FRAMEWORKS, Framework, why_missing
from benchmarks.speed.statistics import estimate, ratios, side_by_side
from tuneoff.base.identity import configuration_digest
from tuneoff.experiment.expand import entries, expand
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.measure.stored import read_runs

ROOT_V1, ROOT_V2 = Path("/sys/fs/cgroup/cpuacct"), Path("/sys/fs/cgroup")
PAIRS = 12
TRIALS, SEED = 12, 0
SCRIPTS = {
    "serial": ("pool_script", "ProcessPoolExecutor, start method spawn"),
    "optuna": ("optuna_script", "the same script started twice over one journal file"),
    "ray-tune": ("ray_script", "a Tuner with a function that returns its final value"),
    "syne-tune": ("syne_script", "a Tuner with LocalBackend, whose trials report once with Reporter"),
}

_ENDS = "processes end without the interpreter's teardown"
CHANGES = {
    "serial": _ENDS,
    "optuna": f"flock on the journal; {_ENDS}",
    "ray-tune": "reused actors, no loggers, tables, log lines, dashboard and waiting trials, niceness 0, state at the end",
    "syne-tune": f"polled every 0.05 s, no callbacks and state, trials print their report and {_ENDS}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentedJob:
    """What one side took, in seconds, and the best values of its trials, sorted. `whole_cpu`: of the command, test and all."""

    seconds: float
    cpu_seconds: float | None  # None: no control group can be made here
    whole_cpu_seconds: float | None
    values: tuple[float, ...]


def measure(settings: Settings) -> Iterator[SpeedRow]:
    """Yield four rows per framework: job time and CPU time, over the documented script, and over it as the adapter changes it."""
    file, trainings = _inputs(settings.folder)
    for framework in FRAMEWORKS:
        if framework.adapter in settings.adapters:
            yield from _rows(framework, file, trainings, settings)


def _inputs(folder: Path) -> tuple[Path, Path]:
    """Write the experiment with a given list of configurations, and the same with their seeds for the scripts."""
    file, trainings = folder / "documented.yaml", folder / "trainings.json"
    content = {
        "include": str(ROOT / "benchmarks" / "digits.yaml"),
        "sampler": "fixed",
        "configurations": {"sample": TRIALS, "seed": SEED},
        "seeds": [SEED],
        "adapters": list(SCRIPTS),
    }
    file.write_text(json.dumps(content))
    loaded = load_matrix(file)
    experiment = expand(loaded, entries(loaded))[0].spec.experiment
    options, epochs = dict(experiment.workload.options), experiment.budget.epochs_per_trial
    context = TrialContext(
        run_dir="", execution_id="", workload="", metric="", mode="max", epochs=epochs, trials=TRIALS, seed=SEED
    )
    trained = []
    for configuration in experiment.configurations:
        seeds = context.seeds(configuration_digest(configuration))
        trained.append(
            {
                "configuration": dict(configuration),
                "seeds": {"split": seeds.split, "trial": seeds.trial},
                "options": options,
                "epochs": epochs,
            }
        )
    trainings.write_text(json.dumps(trained))
    return file, trainings


def _rows(framework: Framework, file: Path, trainings: Path, settings: Settings) -> Iterator[SpeedRow]:
    script, words = SCRIPTS[framework.adapter]
    name = f"documented_cost.{framework.adapter}"
    a = f"tuneoff run of digits with {framework.adapter}, 2 workers, {TRIALS} given configurations, its test left out"
    b = f"as its documents have it, the same trainings: {words}"
    pairs = min(settings.pairs, settings.repeats(PAIRS))
    makers = {
        "tuneoff": lambda: _tuneoff(framework.adapter, file, settings),
        "bare": lambda: _bare(script, trainings, settings),
        "changed": lambda: _bare(script, trainings, settings, "changed"),
    }
    values: set[tuple[float, ...]] = set()

    def say(number: int, side: str, job: DocumentedJob) -> None:
        settings.say(f"  {name}: pair {number + 1}/{pairs}, {side} {job.seconds:.2f} s, CPU {job.cpu_seconds or 0:.2f} s")
        values.add(job.values)
        if len(values) > 1:
            raise MeasurementError(f"all sides must train the same, but the values of {side} differ")

    try:
        reason = why_missing(framework)
        jobs = side_by_side(makers, pairs if reason is None else 0, say)
    except MeasurementError as error:
        reason = str(error)
    if reason is not None:
        yield skipped(name, a, reason, b)
        return
    for what, attribute in (("job_time", "seconds"), ("cpu", "cpu_seconds")):
        ours, theirs, changed, whole = (
            [value for job in jobs[side] if (value := getattr(job, of)) is not None]
            for side, of in (*((side, attribute) for side in jobs), ("tuneoff", "whole_cpu_seconds"))
        )
        if not theirs:
            yield skipped(f"{name}.{what}", a, "no control group that counts CPU time can be made here", b)
            continue
        also = {"A with test and supervision s": whole} if what == "cpu" else {}
        saved = [before - after for before, after in zip(theirs, changed, strict=True)]
        figures = {"A s": ours, "B s": theirs, "B - B as changed s": saved, **also}
        medians = {side: estimate(values).value for side, values in figures.items()}
        samples = {"tuneoff_seconds": ours, "bare_seconds": theirs, "changed_seconds": changed, **also}
        yield SpeedRow(name=f"{name}.{what}", a=a, b=b, result=estimate(ratios(ours, theirs)), figures=medians, samples=samples)
        over = f"the same script as the adapter changes it ({CHANGES[framework.adapter]})"
        yield SpeedRow(name=f"{name}.{what}.as_changed", a=a, b=over, result=estimate(ratios(ours, changed)), samples=samples)


def _tuneoff(adapter: str, file: Path, settings: Settings) -> DocumentedJob:
    with tempfile.TemporaryDirectory(prefix="tuneoff-", dir=settings.folder) as folder:
        results = Path(folder) / "results"
        arguments = ["run", str(file), "--adapter", adapter, "--output", str(results)]
        with _group() as group:
            run_child("tuneoff", arguments, group=group)
            whole = _cpu_seconds(group)
        (record,) = read_runs(results)
    if record.status != "done" or record.test is None or record.test.cpu_ns is None:
        raise MeasurementError(f"{adapter}: the run must be done and tested, but is {record.status}: {record.reason}")
    values = {name: record.metrics[name].value for name in ("time.jct_without_test", "energy.cpu_seconds")}
    job_ms, cpu_seconds = (float(value or 0.0) for value in values.values())
    return DocumentedJob(
        seconds=job_ms / 1e3,
        cpu_seconds=cpu_seconds - record.test.cpu_ns / 1e9,
        whole_cpu_seconds=whole,
        values=tuple(sorted(trial.value for trial in record.trials if trial.value is not None)),
    )


def _bare(script: str, trainings: Path, settings: Settings, *flags: str) -> DocumentedJob:
    with tempfile.TemporaryDirectory(prefix="bare-", dir=settings.folder) as folder, _group() as group:
        answer, _ = run_module(f"benchmarks.speed.bare.documented.{script}", [str(trainings), folder, *flags], group=group)
        used = _cpu_seconds(group)
    return DocumentedJob(seconds=answer["job_seconds"], cpu_seconds=used, whole_cpu_seconds=used, values=tuple(answer["values"]))


@contextmanager
def _group() -> Iterator[Path | None]:
    """Make a control group for a side, where that can be: of processes that nobody waits for, as some of Ray's, only it knows."""
    for parent, usage in ((ROOT_V1, "cpuacct.usage"), (ROOT_V2, "cpu.stat")):
        group = parent / f"tuneoff-speed-{os.getpid()}"
        if (parent / "cgroup.procs").exists() and os.access(parent, os.W_OK):
            group.mkdir()
            try:
                if (group / usage).exists():
                    yield group
                    return
            finally:
                _remove(group)
    yield None


def _remove(group: Path) -> None:
    deadline = time.monotonic() + 10.0
    while time.monotonic() < deadline:
        with suppress(OSError):  # what was killed is to be waited for by whoever adopted it
            group.rmdir()
            return
        time.sleep(0.05)
    raise MeasurementError(f"{group} still has processes")


def _cpu_seconds(group: Path | None) -> float | None:
    """Return the CPU time of all processes that were in a group."""
    if group is None:
        return None
    if (group / "cpuacct.usage").exists():
        return int((group / "cpuacct.usage").read_text()) / 1e9
    return int((group / "cpu.stat").read_text().split()[1]) / 1e6
