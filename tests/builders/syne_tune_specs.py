"""Specifications for the tests of the Syne Tune adapter."""

from __future__ import annotations

from typing import Any

from tuneoff.experiment.space import Categorical, Constant, Float, IntegerLog, SearchSpace, stepped
from tuneoff.experiment.spec import Budget, ExperimentSpec, Objective, RunSpec, Strategy, WorkloadSpec

DRAWS = 4000
SPACE = SearchSpace(
    {
        "linear": Float(low=-1.0, high=3.0),
        "log": Float(low=1e-5, high=1e-1, log=True),
        "log_integer": IntegerLog(low=1, high=8),
        "integer": stepped(16, 64, 16, integer=True),
        "float_step": stepped(0.0, 1.0, 0.25, integer=False),
        "unordered": Categorical(choices=("a", None, 3, [1, 2])),
        "ordered": Categorical(choices=(16, 32, 48, 128), ordered=True),
        "constant": Constant(value="adam"),
    }
)


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
