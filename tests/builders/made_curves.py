"""Results with trials, times and metrics, made in memory: several adapters, seeds, samplers and tasks."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from builders.made_runs import planned_run, results_of
from builders.specs import make_spec
from tuneoff.base.identity import configuration_digest
from tuneoff.experiment.plan import PlannedRun
from tuneoff.experiment.spec import Objective, RunSpec, run_spec_to_json
from tuneoff.judge.results import Results
from tuneoff.record.metric_value import MetricValue, known
from tuneoff.record.run_record import AttemptRecord, BestRecord, EpochRecord, RunRecord, StepRecord, TrialRecord

SECOND = 1_000_000_000
PARTS = {"deploy": 200, "setup": 50, "result_collection": 10, "test": 100, "undeploy": 20}  # ms


@dataclass(frozen=True, kw_only=True)
class Made:
    """What a folder holds. `failed`, `missing`: (adapter, seed) that failed, or never started."""

    adapters: Sequence[str] = ("serial", "optuna")
    seeds: Sequence[int] = (0, 1)
    samplers: Sequence[str] = ("random",)
    tasks: Sequence[str] = ()
    trials: int = 8
    epochs: int = 4
    failed: Sequence[tuple[str, int]] = ()
    missing: Sequence[tuple[str, int]] = ()
    emulated: Sequence[str] = ()
    mode: str = "max"
    repeated: bool = False  # the first adapter is there twice
    analysis: Mapping[str, Any] | None = None


def made_results(made: Made, folder: Path = Path("nowhere")) -> Results:
    """Return the results; nothing is written."""
    planned: list[PlannedRun] = []
    records: list[RunRecord] = []
    entries = [(name, 0) for name in made.adapters] + ([(made.adapters[0], 1)] if made.repeated else [])
    for task in made.tasks or ("",):
        for sampler in made.samplers:
            for place, (adapter, replicate) in enumerate(entries):
                for seed in made.seeds:
                    spec = _spec(made, adapter, replicate, seed, sampler, task)
                    is_emulated = adapter in made.emulated
                    planned.append(planned_run(spec, emulated=is_emulated, block=seed))
                    if replicate or (adapter, seed) not in made.missing:
                        records.append(_record(made, spec, place, is_emulated, hash_of(task, sampler)))
    return results_of(records, planned, folder=folder, analysis=dict(made.analysis or {"confidence": 0.95}))


def hash_of(*texts: str) -> float:
    """Return a number in [0, 1) that the texts decide."""
    return random.Random("/".join(texts)).random()


def _spec(made: Made, adapter: str, replicate: int, seed: int, sampler: str, task: str) -> RunSpec:
    metric = "validation_accuracy" if made.mode == "max" else "validation_loss"
    spec = make_spec(
        adapter=adapter,
        sampler=sampler,
        seed=seed,
        trials=made.trials,
        epochs=made.epochs,
        objective=Objective(metric=metric, mode="max" if made.mode == "max" else "min"),
        variant={"task": task} if task else None,
    )
    if task:  # tasks differ in what is run, too
        budget = replace(spec.experiment.budget, trials=made.trials + 1 + list(made.tasks).index(task))
        spec = replace(spec, experiment=replace(spec.experiment, budget=budget))
    platform = "emulated" if adapter in made.emulated else "local"
    return replace(spec, replicate=replicate, platform=platform)


def _record(made: Made, spec: RunSpec, place: int, emulated: bool, level: float) -> RunRecord:
    draw = random.Random(f"{spec.adapter} {spec.experiment.sampler.name} {spec.experiment.variant} {spec.seed} {spec.replicate}")
    failed = (spec.adapter, spec.seed) in made.failed and not spec.replicate
    start = (PARTS["deploy"] + PARTS["setup"]) * 1_000_000 * (1 + place)
    trials = [_trial(made, spec, number, start, draw, level) for number in range(made.trials)]
    end = max((trial.attempts[-1].ended_ns or 0 for trial in trials), default=start)
    completed = [trial for trial in trials if trial.state == "completed"]
    best = max(completed, key=lambda trial: _sign(made) * (trial.value or 0), default=None)
    steps, metrics = _steps(start, end, place), {} if failed else _metrics(made, spec, best, start, end, place, draw)
    return RunRecord(
        run_id=spec.run_id,
        execution_id=f"{spec.run_id}-1",
        specification=run_spec_to_json(spec),
        status="failed" if failed else "done",
        reason="it was made to fail" if failed else None,
        emulated=emulated,
        started_at="2026-01-01T00:00:00Z",
        steps=steps,
        trials=tuple(trials),
        best=None
        if best is None or failed
        else BestRecord(
            trial=best.trial,
            framework_value=best.value,
            known_ns=end + PARTS["result_collection"] * 1_000_000,
            core_trial=best.trial,
        ),
        metrics=metrics,
    )


def _sign(made: Made) -> int:
    return 1 if made.mode == "max" else -1


def _trial(made: Made, spec: RunSpec, number: int, start: int, draw: random.Random, level: float) -> TrialRecord:
    epoch_ns = SECOND // 10
    begin = start + number // 2 * (made.epochs * epoch_ns + 20_000_000)
    state = "pruned" if number % 4 == 3 and made.epochs > 1 else "failed" if number % 11 == 10 else "completed"
    last = made.epochs if state == "completed" else max(1, made.epochs // 2)
    reach = 0.7 + 0.15 * level + 0.1 * draw.random()
    metric = spec.experiment.objective.metric
    epochs = []
    for epoch in range(1, last + 1):
        value = reach * (1 - math.exp(-epoch)) if made.mode == "max" else math.exp(-reach * epoch) + 0.01
        ended = begin + epoch * epoch_ns
        epochs.append(
            EpochRecord(
                epoch=epoch,
                ended_ns=ended - 5_000_000,
                train_ns=epoch_ns // 2,
                validate_ns=1000,
                metrics={metric: value},
                reported_ns=ended - 2_000_000,
            )
        )
    values = [(_sign(made) * (epoch.metrics[metric] or 0), epoch.epoch) for epoch in epochs]
    top, at = max(values)
    configuration = {"x": draw.random()}
    attempt = AttemptRecord(
        attempt=1,
        state=state,  # type: ignore[arg-type]
        cause="boom" if state == "failed" else None,
        submitted_ns=begin - 1_000_000,
        slot=number % 2,
        started_ns=begin,
        ended_ns=begin + last * epoch_ns,
        epochs=tuple(epochs),
    )
    return TrialRecord(
        trial=f"t{number}",
        configuration=configuration,
        digest=configuration_digest(configuration),
        state=state,  # type: ignore[arg-type]
        cause="boom" if state == "failed" else None,
        value=_sign(made) * top if state == "completed" else None,
        value_epoch=at if state == "completed" else None,
        attempts=(attempt,),
    )


def _steps(start: int, end: int, place: int) -> tuple[StepRecord, ...]:
    million = 1_000_000
    known_at = end + PARTS["result_collection"] * million
    tested = known_at + PARTS["test"] * million
    return (
        StepRecord(step="deploy", started_ns=0, ended_ns=PARTS["deploy"] * million * (1 + place)),
        StepRecord(step="test", started_ns=known_at, ended_ns=tested),
        StepRecord(step="undeploy", started_ns=tested, ended_ns=tested + PARTS["undeploy"] * million),
    )


def _metrics(
    made: Made, spec: RunSpec, best: TrialRecord | None, start: int, end: int, place: int, draw: random.Random
) -> dict[str, MetricValue]:
    parts = {
        **PARTS,
        "deploy": PARTS["deploy"] * (1 + place),
        "setup": PARTS["setup"] * (1 + place),
        "trial": (end - start) / 1e6,
    }
    total = sum(parts.values()) * (0.97 + 0.06 * draw.random())
    metric = spec.experiment.objective.metric
    found = {f"time.{name}": known(float(value), "ms", kind="measured") for name, value in parts.items()}
    found |= {
        "time.jct": known(total, "ms", kind="measured"),
        "time.jct_without_test": known(total - PARTS["test"], "ms"),
        "time.jct_without_metric_collection": known(total, "ms"),
        "overhead.per_trial": known(3.0 * (1 + place) + draw.random(), "ms"),
        "overhead.further_trial": known(3.0 * (1 + place) + draw.random(), "ms"),
        "overhead.per_report": known(0.1 * (1 + place), "ms"),
        "overhead.reports": known(float(spec.experiment.budget.epochs_per_trial), "count"),
        "epochs.trained": known(float(made.trials * spec.experiment.budget.epochs_per_trial), "count"),
        "trials.used": known(float(made.trials), "count"),
        "overhead.job_start": known(20.0 * (1 + place), "ms"),
        "overhead.between": known(1.0 * (1 + place), "ms"),
        "overhead.dispatch": known(2.0 * (1 + place), "ms"),
        "energy.per_completed_trial_without_test": known(
            2.0 + place + draw.random(), "J", kind="estimated" if place % 2 else "derived"
        ),
        "cost.per_completed_trial_without_test": known(1e-5 * (1 + place) * (1 + 0.1 * draw.random()), "USD", kind="declared"),
        "time.metric_collection": known(0.0, "ms"),
        "slots.utilization": known(80.0 - 10 * place, "%"),
        "slots.idle_share": known(10.0, "%"),
        "slots.overhead_share": known(5.0, "%"),
    }
    if best is not None and best.value is not None:
        found["quality.validation"] = known(best.value, metric, kind="measured")
        found["quality.test"] = known(best.value - _sign(made) * 0.01 * draw.random(), metric, kind="measured")
    return found
