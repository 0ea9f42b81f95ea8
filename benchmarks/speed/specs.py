"""The runs that are measured: random search with two workers on a small space, one report per trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tuneoff.base.space import Float, SearchSpace, stepped
from tuneoff.base.targets import load_target
from tuneoff.experiment.spec import (
    Budget,
    CpuLimit,
    ExperimentSpec,
    Objective,
    RunSpec,
    Strategy,
    Timeouts,
    Workers,
    WorkloadSpec,
)
from tuneoff.registry import find

WORKERS = 2
SPACE = SearchSpace(
    {
        "x": Float(low=1e-4, high=1.0, log=True),
        "y": Float(low=0.0, high=1.0),
        "k": stepped(0, 9, 1, integer=True),
    }
)


def make_spec(
    adapter: str,
    workload: str,
    *,
    trials: int,
    epochs: int = 1,
    options: Mapping[str, Any] | None = None,
    own_space: bool = False,
    platform: str = "local",
    adapter_options: Mapping[str, Any] | None = None,
    seed: int = 0,
    cpu_limit: CpuLimit = "none",
) -> RunSpec:
    """Return a run by names of adapter and workload. `own_space`: search the workload's default space instead of `SPACE`.

    Raises:
        UnknownNameError: no such adapter or workload.
        PluginError: the workload cannot be imported.
    """
    target = find("workload", workload).target
    cls = load_target(target)
    metric = cls.default_metric
    experiment = ExperimentSpec(
        workload=WorkloadSpec(name=workload, target=target, options=dict(options or {})),
        search_space=cls.default_space() if own_space else SPACE,
        objective=Objective(metric=metric, mode=cls.metrics[metric]),
        sampler=Strategy(name="random"),
        pruner=Strategy(name="none"),
        budget=Budget(trials=trials, epochs_per_trial=epochs),
        workers=Workers(count=WORKERS, cpu_limit=cpu_limit),
        timeouts=Timeouts(trial_seconds=300.0, silence_seconds=300.0),
    )
    return RunSpec(
        experiment=experiment,
        adapter=adapter,
        adapter_target=find("adapter", adapter).target,
        platform=platform,
        seed=seed,
        options=dict(adapter_options or {}),
    )
