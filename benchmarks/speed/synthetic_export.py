"""A results folder with a current export of many trials, whose records hold none: what loading an export takes depends on
the number of runs and on the tables alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from benchmarks.speed.specs import make_spec
from tuneoff.base.layout import ACCOUNTING, PLAN, RUNS, SAMPLES
from tuneoff.experiment.plan import Plan, PlannedRun
from tuneoff.experiment.spec import RunSpec, Strategy, run_spec_to_json
from tuneoff.record.end import ExecutionEnd, key_of, write_end
from tuneoff.record.run_record import RunRecord, TrialState
from tuneoff.record.store import write_run
from tuneoff.tell.frames.export import ParquetTable, export_key, schema
from tuneoff.tell.frames.tables import TABLES, Column

ADAPTERS = ("serial", "optuna", "ray-tune", "syne-tune")
SAMPLERS = ("random", "tpe", "cmaes")
STATE_SHARES = {"completed": 0.7, "pruned": 0.25, "failed": 0.03, "cancelled": 0.01, "timed_out": 0.01}


def write_export(path: Path, runs: int, trials: int) -> Path:
    """Write the folder and its tables of runs and trials, `trials` per run, and return the table of trials."""
    import pyarrow

    random = np.random.default_rng(7)
    specs = list(_specs(runs))
    _write_records(path, specs)
    export = path / "export"
    export.mkdir()
    key = export_key(path)
    files = {name: ParquetTable(export / f"{name}.parquet", TABLES[name], key) for name in TABLES}
    columns, form = TABLES["trials"], schema(TABLES["trials"])
    for spec in specs:
        columns_by_name = {name: _values(name, column, spec, trials, random) for name, column in columns.items()}
        arrays = [pyarrow.array(columns_by_name[field.name], type=field.type, from_pandas=True) for field in form]
        files["trials"].add(pyarrow.Table.from_arrays(arrays, schema=form))
    for file in files.values():
        file.close()
    return export / "trials.parquet"


def _specs(runs: int) -> Iterator[RunSpec]:
    pairs = [(adapter, sampler) for adapter in ADAPTERS for sampler in SAMPLERS]
    base = make_spec("serial", "null", trials=1)
    for number in range(runs):
        adapter, sampler = pairs[number % len(pairs)]
        experiment = replace(base.experiment, sampler=Strategy(name=sampler))
        yield replace(base, adapter=adapter, experiment=experiment, seed=number // len(pairs))


def _write_records(path: Path, specs: list[RunSpec]) -> None:
    """Write the plan and records without trials."""
    planned = [PlannedRun(run_id=spec.run_id, spec=spec, label=spec.adapter, block=spec.seed) for spec in specs]
    path.mkdir(parents=True)
    (path / PLAN).write_text(json.dumps(Plan(name="synthetic", path="synthetic.yaml", runs=tuple(planned)).to_json()))
    for spec in specs:
        folder = path / RUNS / spec.run_id / _execution(spec)
        folder.mkdir(parents=True)
        specification = run_spec_to_json(spec)
        record = RunRecord(
            run_id=spec.run_id, execution_id=_execution(spec), specification=specification, status="done", started_at="2026-01-01"
        )
        write_run(folder, record, key_of(write_end(folder, ExecutionEnd())))
        for name in (SAMPLES, ACCOUNTING):
            (folder / name).write_text("{}\n")


def _execution(spec: RunSpec) -> str:
    return f"{spec.run_id}-1"


def _values(name: str, column: Column, spec: RunSpec, trials: int, random: np.random.Generator) -> Any:
    """Return what a column holds in the rows of a run: as a run's rows have it, or drawn at random."""
    known: dict[str, Any] = {
        "run_id": spec.run_id,
        "execution_id": _execution(spec),
        "adapter": spec.adapter,
        "label": spec.adapter,
        "sampler": spec.experiment.sampler.name,
        "pruner": "none",
        "seed": spec.seed,
        "warm_up": False,
        "excluded": False,
        "ended_early": False,
        "is_selected": True,
    }
    if name in known:
        return [known[name]] * trials
    if name == "state":
        assert {*STATE_SHARES} == {*get_args(TrialState)}
        return random.choice(list(STATE_SHARES), trials, p=list(STATE_SHARES.values())).tolist()
    if name == "trial":
        return [f"{number:05}" for number in range(trials)]
    if name == "configuration":
        draws = random.random((trials, 2))
        return [f'{{"k":{place % 10},"x":{x!r},"y":{y!r}}}' for place, (x, y) in enumerate(draws.tolist())]
    if name == "digest":
        return [f"{number:016x}" for number in random.integers(0, 2**63, trials).tolist()]
    if column.type == "key":
        return random.choice(["derived", "declared"], trials).tolist()
    if column.type == "text":
        return [None] * trials
    if column.type == "integer":
        return random.integers(1, 50, trials)
    return np.where(random.random(trials) < 0.05, np.nan, random.lognormal(0.0, 1.0, trials))
