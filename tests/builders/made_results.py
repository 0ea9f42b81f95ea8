"""Results in memory, as a matrix would have left them: plans and records with the metrics that a test gives."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from builders.made_runs import planned_run, results_of
from builders.specs import make_spec
from tuneoff.base.identity import digest
from tuneoff.experiment.accounting.declared import NO_ACCOUNTING, Accounting
from tuneoff.experiment.plan import PlannedRun
from tuneoff.experiment.spec import EnvironmentSpec, RunSpec, run_spec_to_json
from tuneoff.judge.results import Results
from tuneoff.measure.use import DISTURBED, SHARE
from tuneoff.record.flag_meanings import EXCLUDING
from tuneoff.record.metric_value import Kind, MetricValue, metric_value, missing
from tuneoff.record.run_record import ClockRecord, FlagRecord, RunRecord, RunStatus

QUESTIONS = {"quality": "quality.test", "time": "time.jct"}
ANALYSIS: Mapping[str, Any] = {
    "format": 2,
    "primary_metric": "time.jct",
    "questions": QUESTIONS,
    "margin_percent": 5.0,
    "quality_margin": 0.01,
    "confidence": 0.95,
    "family_size": 15,
}
OF_EPOCHS = {"overhead.per_report": 1.0, "overhead.reports": 10.0, "epochs.trained": 100.0, "trials.used": 10.0}  # ten in a trial
UNITS = {"time": "ms", "overhead": "ms", "stage": "ms", "memory": "MB", "cost": "USD", "carbon": "g", "slots": "%", "waste": "ms"}
Metrics = Mapping[str, "float | MetricValue"]
Draw = Callable[[int], Metrics]  # by seed


@dataclass(frozen=True)
class Entry:
    """What an adapter's runs of one scope come to. `status`, `flags`: of single seeds; `absent`: seeds that were not run."""

    adapter: str
    draw: Draw
    replicate: int = 0
    sampler: str = "random"
    pruner: str = "none"
    variant: Mapping[str, Any] = field(default_factory=dict)
    status: Mapping[int, RunStatus] = field(default_factory=dict)
    absent: Sequence[int] = ()
    flags: Mapping[int, Sequence[str]] = field(default_factory=dict)
    disturbed: Sequence[int] = ()  # by other programs, which used half of the processors
    unsampled: Sequence[int] = ()
    skipped: str | None = None
    same_as: str | None = None  # the sampler whose runs stand for these
    emulated: bool = False
    mode: str = "max"
    metric: str = "validation_accuracy"
    stream: str | None = None  # what the task changes, where that is not said by its name
    start: str | None = None  # of its workers, where it is not that of fresh interpreters
    release: str | None = None  # in an environment of its own
    packages: Mapping[str, str] = field(default_factory=dict)  # that are installed there
    environment: Mapping[str, Any] = field(default_factory=dict)  # as the records have it, beside the host
    copy: int = 0  # of `copies` in the variant
    began_ms: int = 0  # on the clock of the machine, where its copies are told apart by that


def steady(jct: float = 1000.0, quality: float = 0.9, spread: float = 0.01, key: str = "") -> Draw:
    """Return values around these: times by a factor, quality by a tenth of it as much, with chance of their own."""

    def draw(seed: int) -> Metrics:
        chance = random.Random(f"{key} {seed}")
        return {
            "time.jct": jct * (1 + spread * chance.gauss(0, 1)),
            "quality.test": quality + 0.1 * spread * chance.gauss(0, 1),
            "quality.validation": quality + 0.1 * spread * chance.gauss(0, 1),
        }

    return draw


def over_tasks(
    tasks: int,
    labels: Iterable[str],
    draw: Callable[[str, int], Draw],
    of: Callable[[str, int], Mapping[str, Any]] = lambda label, task: {},
) -> list[Entry]:
    """Return entries of these adapters in so many tasks; `of`: what else an entry has, by label and task."""
    places = [(label, task) for task in range(tasks) for label in labels]
    return [Entry(label, draw(label, task), variant={"task": f"t{task}"}, **of(label, task)) for label, task in places]


def results(
    entries: Iterable[Entry],
    seeds: Sequence[int] = range(10),
    analysis: Mapping[str, Any] | None = None,
    folder: Path = Path("/nonexistent"),
    accounting: Accounting = NO_ACCOUNTING,
    **changes: Any,
) -> Results:
    """Return the results of these entries over the seeds; `changes` are of the frozen analysis."""
    frozen = {**(ANALYSIS if analysis is None else analysis), "seeds": list(seeds), **changes}
    planned: list[PlannedRun] = []
    records: list[RunRecord] = []
    for entry in entries:
        for block, seed in enumerate(seeds):
            spec = _spec(entry, seed)
            twin = _spec(replace(entry, sampler=entry.same_as), seed).run_id if entry.same_as is not None else None
            skipped = f"same as sampler {entry.same_as!r}: run {twin}" if twin is not None else entry.skipped
            planned.append(planned_run(spec, block=block, skip_reason=skipped, same_as=twin))
            if skipped is None and seed not in entry.absent:
                records.append(_record(entry, spec))
    return results_of(records, planned, folder=folder, analysis=frozen, accounting=accounting)


def _spec(entry: Entry, seed: int) -> RunSpec:
    spec = make_spec(adapter=entry.adapter, sampler=entry.sampler, pruner=entry.pruner, seed=seed, variant=entry.variant)
    objective = replace(spec.experiment.objective, metric=entry.metric, mode=entry.mode)  # type: ignore[arg-type]
    platform = "emulated" if entry.emulated else spec.platform
    workload = replace(spec.experiment.workload, options=dict(entry.variant))  # a variant's name is not part of a run's identity
    changes = digest(entry.variant["task"] if entry.stream is None else entry.stream) if "task" in entry.variant else ""
    of_workers = {key.removeprefix("workers."): value for key, value in entry.variant.items() if key.startswith("workers.")}
    workers = replace(spec.experiment.workers, **of_workers)
    budget = replace(spec.experiment.budget, trials=entry.variant.get("budget.trials", spec.experiment.budget.trials))
    changed: dict[str, Any] = {
        "objective": objective,
        "workload": workload,
        "workers": workers,
        "budget": budget,
        "task_digest": changes,
        "copies": entry.variant.get("copies", 1),
    }
    experiment = replace(spec.experiment, **changed)
    options = {"start": entry.start} if entry.start is not None else {}
    environment = EnvironmentSpec(version=entry.release) if entry.release is not None else None
    changed = {"replicate": entry.replicate, "platform": platform, "experiment": experiment, "options": options}
    changed |= {"environment": environment, "copy": entry.copy}
    return replace(spec, **changed, local_options=())


def _record(entry: Entry, spec: RunSpec) -> RunRecord:
    status = entry.status.get(spec.seed, "done")
    values = dict(entry.draw(spec.seed)) if status == "done" else {}
    is_disturbed = spec.seed in entry.disturbed
    values[SHARE] = (
        missing("%", "no sample") if spec.seed in entry.unsampled else metric_value(50.0 if is_disturbed else 0.0, "%")
    )
    flags = [*entry.flags.get(spec.seed, ()), *([DISTURBED] if is_disturbed else []), *(EXCLUDING if entry.emulated else ())]
    return RunRecord(
        run_id=spec.run_id,
        execution_id=f"{spec.run_id}-1",
        specification=run_spec_to_json(spec),
        status=status,
        reason=None if status == "done" else "planted",
        started_at="2026-01-01T00:00:01Z",
        environment={
            "host": "here",
            **({"distributions": dict(entry.packages)} if entry.packages else {}),
            **entry.environment,
        },
        flags=tuple(FlagRecord(name=name, text="planted") for name in flags),
        clock=ClockRecord(host="here", boot_id="b", start_monotonic_ns=entry.began_ms * 1_000_000, start_wall_ns=0),
        metrics={name: _metric(name, value, entry.metric) for name, value in values.items()},
    )


def _metric(name: str, value: float | MetricValue, objective: str) -> MetricValue:
    if isinstance(value, MetricValue):
        return value
    family = name.partition(".")[0]
    kinds: dict[str, Kind] = {"quality": "measured", "energy": "estimated", "carbon": "estimated", "cost": "declared"}
    unit = objective if family == "quality" else "kWh" if name == "energy.trial" else UNITS.get(family, "J")
    return metric_value(value, unit, kind=kinds.get(family, "derived"))
