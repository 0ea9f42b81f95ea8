"""Plans and in-memory studies of Optuna, and stand-ins for Ray's trials: no Ray is started."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
from optuna.study import Study, StudyDirection

from tuneoff.experiment.spec import RunSpec
from tuneoff_adapters.optuna.options import study_plan
from tuneoff_adapters.optuna.plan import StudyPlan
from tuneoff_adapters.optuna.pruners import make_pruner
from tuneoff_adapters.optuna.search import make_sampler


def plan_of(spec: RunSpec, folder: Path | None = None) -> StudyPlan:
    return study_plan(spec, folder or Path("/nonexistent"))


def memory_study(plan: StudyPlan) -> Study:
    """Return a study in memory with the plan's sampler and pruner."""
    return optuna.create_study(
        study_name=plan.study_name,
        sampler=make_sampler(plan, 0),
        pruner=make_pruner(plan),
        direction=StudyDirection.MAXIMIZE if plan.mode == "max" else StudyDirection.MINIMIZE,
    )


@dataclass(eq=False)  # Ray's schedulers use trials as keys
class RayTrial:
    """As much of one of Ray's trials as schedulers and submissions need."""

    trial_id: str
    config: dict[str, Any] = field(default_factory=dict)
    pickled_error_file: str | None = None

    def invalidate_json_state(self) -> None:
        pass
