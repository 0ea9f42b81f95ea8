"""The study over one journal file: made by the coordinator, opened by each worker."""

from __future__ import annotations

import logging
import warnings

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import Study, StudyDirection

from tuneoff.experiment.translation import LIST_INDEX, ListTranslation
from tuneoff.record.history import History, not_begun
from tuneoff_adapters.optuna.journal_lock import FlockJournalLock
from tuneoff_adapters.optuna.plan import NO_HISTORY, StudyPlan
from tuneoff_adapters.optuna.telling import tell


def create_study(plan: StudyPlan, history: History = NO_HISTORY) -> Study:
    """Create the study, tell it what a continued run did before, and enqueue the listed configurations."""
    direction = StudyDirection.MAXIMIZE if plan.mode == "max" else StudyDirection.MINIMIZE
    study = optuna.create_study(study_name=plan.study_name, storage=_storage(plan), direction=direction)
    if history:
        tell(study, plan, history)
    if isinstance(plan.translation, ListTranslation):
        left = not_begun(plan.translation.configurations, history)
        for index in left[: plan.trials - len(history.unfinished)]:
            study.enqueue_trial({LIST_INDEX: index})
    return study


def open_study(plan: StudyPlan, sampler: BaseSampler, pruner: BasePruner) -> Study:
    """Open the study that the coordinator created; neither sampler nor pruner is stored in it."""
    return optuna.load_study(study_name=plan.study_name, storage=_storage(plan), sampler=sampler, pruner=pruner)


def quieten() -> None:
    """Keep this process's log to what matters: no line per trial, no notice that a class may change in a later version."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    logging.getLogger("optuna.study._optimize").setLevel(logging.ERROR)  # a failed trial's traceback: core logs it already
    warnings.filterwarnings("ignore", category=ExperimentalWarning)


def _storage(plan: StudyPlan) -> JournalStorage:
    return JournalStorage(JournalFileBackend(plan.journal, lock_obj=FlockJournalLock(plan.journal)))
