"""Specifications, plans and spaces for the tests of the Katib adapter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from builders.spaces import SPACE
from tuneoff.experiment.sampling import sample_distinct
from tuneoff.experiment.spec import Budget, ExperimentSpec, Objective, RunSpec, Strategy, Workers, WorkloadSpec
from tuneoff.record.events.writer import EventWriter
from tuneoff.run.lifecycle.context import RunContext
from tuneoff.run.supervisor.prepare import new_execution, write_inputs
from tuneoff_adapters.katib.plan import KatibPlan, katib_plan

IMAGE = "registry.example/tuneoff@sha256:0123456789abcdef"


def spec_of(sampler: str | Strategy = "random", *, platform: str = "kubernetes", **changes: Any) -> RunSpec:
    """Return a run; `options` are the adapter's, the rest are fields of the experiment."""
    options = changes.pop("options", {"image": IMAGE} if platform == "kubernetes" else {})
    values: dict[str, Any] = {
        "workload": WorkloadSpec(name="null", target="tuneoff_workloads.null:Null"),
        "search_space": SPACE,
        "objective": Objective(metric="validation_loss", mode="min"),
        "sampler": Strategy(name=sampler) if isinstance(sampler, str) else sampler,
        "pruner": Strategy(name="none"),
        "budget": Budget(trials=8, epochs_per_trial=3),
        "workers": Workers(count=2, cpus=1.0, memory_mb=500),
        **changes,
    }
    experiment = ExperimentSpec(**values)
    if experiment.sampler.name == "fixed" and not experiment.configurations:
        experiment = replace(experiment, configurations=tuple(sample_distinct(experiment.search_space, 8, seed=1)))
    return RunSpec(
        experiment=experiment,
        adapter="katib",
        adapter_target="tuneoff_adapters.katib:KatibAdapter",
        platform=platform,
        seed=3,
        options=options,
    )


def context_of(spec: RunSpec, folder: Path) -> RunContext:
    """Return the context of a new execution in `folder`."""
    execution = new_execution(spec, folder)
    events = EventWriter(execution.folder, execution.execution_id, "coordinator")
    return RunContext(
        spec=spec,
        run_dir=execution.folder,
        execution_id=execution.execution_id,
        trial_context=write_inputs(execution),
        events=events,
    )


def plan_of(spec: RunSpec, folder: Path) -> KatibPlan:
    """Return the plan of a new execution in `folder`."""
    context = context_of(spec, folder)
    context.events.close()
    return katib_plan(context)
