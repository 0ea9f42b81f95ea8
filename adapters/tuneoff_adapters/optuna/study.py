"""The study as a worker opens it; and how little Optuna logs, in all processes."""

from __future__ import annotations

import logging
import warnings

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler
from optuna.study import Study

from tuneoff_adapters.optuna.plan import StudyPlan
from tuneoff_adapters.optuna.storages import Operations, Stale, open_storage


def open_study(
    plan: StudyPlan, sampler: BaseSampler, pruner: BasePruner, operations: Operations, stale: Stale | None = None
) -> Study:
    """Open the study that the coordinator created; neither sampler nor pruner is stored in it."""
    storage = open_storage(plan, operations, stale)
    return optuna.load_study(study_name=plan.study_name, storage=storage, sampler=sampler, pruner=pruner)


def quieten() -> None:
    """Keep this process's log to what matters: no line per trial, no notice that a class may change in a later version."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    logging.getLogger("optuna.study._optimize").setLevel(logging.ERROR)  # a failed trial's traceback: core logs it already
    warnings.filterwarnings("ignore", category=ExperimentalWarning)
