"""The study in the coordinator: created, given listed configurations; its own best trial."""

from __future__ import annotations

import optuna
from optuna.study import Study, StudyDirection
from optuna.trial import TrialState

from tuneoff.adapter import Best
from tuneoff.base.identity import trial_name
from tuneoff.experiment.translation import LIST_INDEX, ListTranslation
from tuneoff_adapters.optuna.plan import RETRY_OF, StudyPlan
from tuneoff_adapters.optuna.storages import open_storage


def create_study(plan: StudyPlan) -> Study:
    """Create the study, and enqueue the listed configurations."""
    direction = StudyDirection.MAXIMIZE if plan.mode == "max" else StudyDirection.MINIMIZE
    study = optuna.create_study(study_name=plan.study_name, storage=open_storage(plan), direction=direction)
    if isinstance(plan.translation, ListTranslation):
        for index in range(min(plan.trials, len(plan.translation.configurations))):
            study.enqueue_trial({LIST_INDEX: index})
    return study


def best_of(study: Study, plan: StudyPlan) -> Best | None:
    """Return the study's best trial, or None where none completed (Optuna raises ValueError then)."""
    if not study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        return None
    best = study.best_trial
    return Best(
        trial_id=trial_name(best.user_attrs.get(RETRY_OF, best.number)),
        configuration=plan.translation.decode(best.params),
        value=best.value,
    )
