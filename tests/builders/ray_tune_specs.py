"""Specifications, contexts and stand-ins for Ray's trials, for the tests of the Ray Tune adapter that start no Ray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adapters.lifecycle_run import SPACE, TOY
from tuneoff.experiment.space import SearchSpace
from tuneoff.experiment.spec import Budget, ExperimentSpec, Failures, Objective, RunSpec, Strategy, Workers, WorkloadSpec
from tuneoff.record.events.writer import EventWriter
from tuneoff.run.lifecycle.context import RunContext
from tuneoff.run.supervisor.prepare import new_execution, write_inputs


def run_spec(
    *,
    space: SearchSpace = SPACE,
    sampler: str = "random",
    sampler_options: Mapping[str, Any] | None = None,
    pruner: str = "none",
    pruner_options: Mapping[str, Any] | None = None,
    budget: Budget | None = None,
    configurations: Sequence[Mapping[str, Any]] = (),
    stops: Mapping[str, int] | None = None,
    retries: int = 0,
) -> RunSpec:
    """Return a run of the toy workload by the Ray Tune adapter."""
    return RunSpec(
        experiment=ExperimentSpec(
            workload=WorkloadSpec(name="toy", target=TOY),
            search_space=space,
            objective=Objective(metric="loss", mode="min"),
            sampler=Strategy(name=sampler, options=dict(sampler_options or {})),
            pruner=Strategy(name=pruner, options=dict(pruner_options or {})),
            budget=budget or Budget(trials=10, epochs_per_trial=9),
            workers=Workers(count=2),
            failures=Failures(retries=retries),
            configurations=tuple(configurations),
            stops=dict(stops or {}),
        ),
        adapter="ray-tune",
        adapter_target="tuneoff_adapters.ray_tune:RayTuneAdapter",
    )


def run_context(spec: RunSpec, folder: Path) -> RunContext:
    """Return the context of a new execution under `folder`."""
    execution = new_execution(spec, folder)
    return RunContext(
        spec=spec,
        run_dir=execution.folder,
        execution_id=execution.execution_id,
        trial_context=write_inputs(execution),
        events=EventWriter(execution.folder, execution.execution_id, "coordinator"),
    )


@dataclass(eq=False)  # Ray's schedulers use trials as keys
class RayTrial:
    """As much of one of Ray's trials as schedulers and submissions need."""

    trial_id: str
    config: dict[str, Any] = field(default_factory=dict)
    pickled_error_file: str | None = None

    def invalidate_json_state(self) -> None:
        pass
