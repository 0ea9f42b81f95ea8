"""Specifications and contexts of runs: all that a test does not name is the least that a run may have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuneoff.base.capabilities import Reports
from tuneoff.base.space import Categorical, Float, IntegerLog, SearchSpace, stepped
from tuneoff.experiment.spec import Budget, ExperimentSpec, Failures, Objective, RunSpec, Strategy, Workers, WorkloadSpec
from tuneoff.record.events.writer import EventWriter
from tuneoff.record.run_context import RunContext
from tuneoff.run.supervisor.execution import new_execution, write_inputs

X = SearchSpace({"x": Float(low=0.0, high=1.0)})
NULL = WorkloadSpec(name="null", target="tuneoff_workloads.null:Null")
CURVE = WorkloadSpec(name="curve", target="trial_runs:Curve")
TOY = WorkloadSpec(name="toy", target="adapters.toy_workload:Toy")
TOY_SPACE = SearchSpace(
    {
        "x": Float(low=0.0, high=1.0),
        "rate": Float(low=1e-5, high=1e-1, log=True),
        "width": IntegerLog(low=1, high=64),
        "depth": stepped(0, 8, 2, integer=True),
        "kind": Categorical(choices=("a", "b", "c")),
    }
)


def make_experiment(
    *, sampler: str | Strategy = "random", pruner: str | Strategy = "none", trials: int = 10, epochs: int = 4, **fields: Any
) -> ExperimentSpec:
    """Return an experiment; `fields` are its own, of which None is as if it were not given."""
    values = {
        "workload": WorkloadSpec(name="null", target="m:W"),
        "search_space": X,
        "objective": Objective(metric="validation_accuracy", mode="max"),
        "sampler": Strategy(name=sampler) if isinstance(sampler, str) else sampler,
        "pruner": Strategy(name=pruner) if isinstance(pruner, str) else pruner,
        "budget": Budget(trials=trials, epochs_per_trial=epochs),
        "workers": Workers(count=2),
        **{name: value for name, value in fields.items() if value is not None},
    }
    return ExperimentSpec(**values)


def make_spec(
    adapter: str = "serial",
    *,
    target: str = "m:C",
    seed: int = 0,
    replicate: int = 0,
    platform: str = "local",
    options: Mapping[str, Any] | None = None,
    reports: Reports = "every_epoch",
    **experiment: Any,
) -> RunSpec:
    """Return a run; `experiment` are the arguments of `make_experiment`."""
    return RunSpec(
        experiment=make_experiment(**experiment),
        adapter=adapter,
        adapter_target=target,
        seed=seed,
        replicate=replicate,
        platform=platform,
        options=dict(options or {}),
        reports=reports,
    )


def toy_spec(
    adapter: str,
    *,
    sampler: str | Strategy = "random",
    sampler_options: Mapping[str, Any] | None = None,
    pruner: str | Strategy = "none",
    pruner_options: Mapping[str, Any] | None = None,
    epochs: int = 9,
    mode: str = "min",
    retries: int = 0,
    space: SearchSpace = TOY_SPACE,
    **more: Any,
) -> RunSpec:
    """Return a run of the toy workload."""
    fields: dict[str, Any] = {
        "workload": TOY,
        "search_space": space,
        "objective": Objective(metric="loss", mode=mode),  # type: ignore[arg-type]
        "failures": Failures(retries=retries),
        "sampler": Strategy(name=sampler, options=dict(sampler_options or {})) if isinstance(sampler, str) else sampler,
        "pruner": Strategy(name=pruner, options=dict(pruner_options or {})) if isinstance(pruner, str) else pruner,
    }
    return make_spec(adapter, epochs=epochs, **{**fields, **more})


def make_context(spec: RunSpec, folder: Path) -> RunContext:
    """Return the context of a new execution under `folder`."""
    execution = new_execution(spec, folder)
    return RunContext(
        spec=spec,
        run_dir=execution.folder,
        execution_id=execution.execution_id,
        trial_context=write_inputs(execution),
        events=EventWriter(execution.folder, execution.execution_id, "coordinator"),
    )
