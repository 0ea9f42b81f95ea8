"""Specifications for the tests of the Syne Tune adapter."""

from __future__ import annotations

from typing import Any

from tuneoff.experiment.space import SearchSpace
from tuneoff.experiment.spec import Budget, ExperimentSpec, Objective, RunSpec, Strategy, WorkloadSpec

DRAWS = 4000


def spec_of(space: SearchSpace, sampler: str | Strategy = "random", **changes: Any) -> RunSpec:
    values: dict[str, Any] = {
        "workload": WorkloadSpec(name="toy", target="adapters.toy_workload:Toy"),
        "search_space": space,
        "objective": Objective(metric="loss", mode="min"),
        "sampler": Strategy(name=sampler) if isinstance(sampler, str) else sampler,
        "pruner": Strategy(name="none"),
        "budget": Budget(trials=DRAWS, epochs_per_trial=3),
        **changes,
    }
    return RunSpec(experiment=ExperimentSpec(**values), adapter="syne-tune", adapter_target="", seed=3)
