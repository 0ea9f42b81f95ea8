"""Runs made by hand, for controls: trials with given values per epoch, without processes or clocks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from builders.specs import make_spec
from builders.stored import write_run
from tuneoff.base.identity import configuration_digest
from tuneoff.base.layout import PLAN, RUNS
from tuneoff.experiment.plan import Plan, PlannedRun
from tuneoff.experiment.spec import RunSpec, run_spec_to_json
from tuneoff.judge.results import Results
from tuneoff.record.metric_value import metric_value
from tuneoff.record.run_record import AttemptRecord, EpochRecord, FlagRecord, RunRecord, TrialRecord
from tuneoff.record.store import selected_executions

METRIC = "validation_accuracy"
Curve = Sequence[Mapping[str, float | None]]  # metrics by epoch


def made_spec(adapter: str = "serial", *, listed: int = 0, **more: Any) -> RunSpec:
    """Return a specification; `listed`: how many configurations `sampler: fixed` has."""
    return make_spec(adapter, configurations=tuple({"x": place / 10} for place in range(listed)), **more)


def made_run(
    spec: RunSpec,
    curves: Sequence[Curve],
    quality: float | None = None,
    *,
    metrics: Mapping[str, float] | None = None,
    flags: Sequence[str] = (),
    execution: str = "1",
    **changes: Any,
) -> RunRecord:
    """Return a run that is done, whose trial number i has the configuration x = i / 10 and these metrics by epoch."""
    measured = {**({"quality.test": quality} if quality is not None else {}), **(metrics or {})}
    record = RunRecord(
        run_id=spec.run_id,
        execution_id=f"{spec.run_id}-{execution}",
        specification=run_spec_to_json(spec),
        status="done",
        started_at=f"2026-01-01T00:00:0{execution}Z",
        trials=tuple(_trial(place, curve) for place, curve in enumerate(curves)),
        flags=tuple(FlagRecord(name=name, text="planted") for name in flags),
        metrics={name: metric_value(value, "ms" if name.startswith("time.") else METRIC) for name, value in measured.items()},
    )
    return replace(record, **changes)


def planned_run(spec: RunSpec, **more: Any) -> PlannedRun:
    """Return a run's place in a plan, with the label that a plan gives."""
    label = spec.adapter + (spec.environment.text if spec.environment is not None else "")
    label += f"@{spec.platform}" if spec.platform == "emulated" else ""
    label += f"#{spec.replicate + 1}" if spec.replicate else ""
    return PlannedRun(run_id=spec.run_id, spec=spec, label=label, **{"block": 0, **more})


def plan_of(runs: Sequence[PlannedRun], *, name: str = "made", **more: Any) -> Plan:
    """Return the plan of these runs."""
    return Plan(**{"name": name, "path": f"{name}.yaml", "runs": tuple(runs), **more})


def planned(runs: Sequence[RunRecord]) -> list[PlannedRun]:
    """Return the planned runs of exactly these records, in their order."""
    known = {run.run_id: run for run in reversed(runs)}
    return [planned_run(known[run_id].run_spec()) for run_id in dict.fromkeys(run.run_id for run in runs)]


def results_of(
    runs: Sequence[RunRecord],
    plan: Sequence[PlannedRun] | None = None,
    analysis: Mapping[str, Any] | None = None,
    folder: Path = Path("/nonexistent"),
    **more: Any,
) -> Results:
    """Return the results of these runs; `plan`: in its order, without one exactly these runs; `more`: of `plan_of`."""
    made = sorted(planned(runs), key=lambda run: (run.label, run.spec.seed)) if plan is None else plan
    return Results(
        folder=folder,
        plan=plan_of(made, analysis=analysis or {}, **more),
        planned=tuple(run for run in made if not run.spec.warm_up and not run.spec.copy),
        records=tuple(runs),
        selected=selected_executions(sorted(runs, key=lambda run: run.execution_id)),
    )


def write_results(results: Results) -> Path:
    """Write a results folder as commands read it."""
    results.folder.mkdir(parents=True, exist_ok=True)
    (results.folder / PLAN).write_text(json.dumps(results.plan.to_json()))
    for record in results.records:
        place = results.folder / RUNS / record.run_id / record.execution_id
        place.mkdir(parents=True)
        write_run(place, record)
    return results.folder


def _trial(place: int, curve: Curve) -> TrialRecord:
    values = [metrics[METRIC] for metrics in curve if metrics.get(METRIC) is not None]
    epochs = tuple(
        EpochRecord(epoch=number, ended_ns=number, train_ns=0, validate_ns=0, metrics=dict(metrics))
        for number, metrics in enumerate(curve, 1)
    )
    attempt = AttemptRecord(attempt=1, state="completed", slot=0, started_ns=0, ended_ns=len(curve), epochs=epochs)
    configuration = {"x": place / 10}
    return TrialRecord(
        trial=f"t{place}",
        configuration=configuration,
        digest=configuration_digest(configuration),
        state="completed",
        value=max(values) if values else None,  # type: ignore[type-var]
        value_epoch=1 if values else None,
        attempts=(attempt,),
    )
