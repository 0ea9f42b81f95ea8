"""Specifications and in-memory studies for the tests of the Optuna adapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.study import Study, StudyDirection

from adapters.lifecycle_run import SPACE, TOY
from tuneoff.experiment.space import SearchSpace
from tuneoff.experiment.spec import Budget, ExperimentSpec, Failures, Objective, RunSpec, Strategy, Workers, WorkloadSpec
from tuneoff.workload import Mode
from tuneoff_adapters.optuna.plan import StudyPlan, study_plan
from tuneoff_adapters.optuna.pruners import make_pruner
from tuneoff_adapters.optuna.samplers import make_sampler


def run_spec(
    *,
    space: SearchSpace = SPACE,
    sampler: str = "random",
    sampler_options: Mapping[str, Any] | None = None,
    pruner: str = "none",
    pruner_options: Mapping[str, Any] | None = None,
    trials: int = 10,
    epochs: int = 9,
    mode: Mode = "min",
    configurations: Sequence[Mapping[str, Any]] = (),
    stops: Mapping[str, int] | None = None,
    seed: int = 0,
    retries: int = 0,
    options: Mapping[str, Any] | None = None,
) -> RunSpec:
    """Return a run of the toy workload by the Optuna adapter."""
    return RunSpec(
        experiment=ExperimentSpec(
            workload=WorkloadSpec(name="toy", target=TOY),
            search_space=space,
            objective=Objective(metric="loss", mode=mode),
            sampler=Strategy(name=sampler, options=dict(sampler_options or {})),
            pruner=Strategy(name=pruner, options=dict(pruner_options or {})),
            budget=Budget(trials=trials, epochs_per_trial=epochs),
            workers=Workers(count=2),
            failures=Failures(retries=retries),
            configurations=tuple(configurations),
            stops=dict(stops or {}),
        ),
        adapter="optuna",
        adapter_target="tuneoff_adapters.optuna:OptunaAdapter",
        seed=seed,
        options=dict(options or {}),
    )


def plan_of(spec: RunSpec, folder: Path | None = None) -> StudyPlan:
    return study_plan(spec, folder or Path("/nonexistent"))


def memory_study(plan: StudyPlan, worker: int = 0) -> Study:
    """Return a study in memory with the plan's sampler and pruner."""
    return optuna.create_study(
        study_name=plan.study_name,
        sampler=make_sampler(plan, worker),
        pruner=make_pruner(plan),
        direction=StudyDirection.MAXIMIZE if plan.mode == "max" else StudyDirection.MINIMIZE,
    )
