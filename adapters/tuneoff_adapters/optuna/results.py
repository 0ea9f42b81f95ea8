"""The study's own answer."""

from __future__ import annotations

from optuna.study import Study
from optuna.trial import TrialState

from tuneoff.adapter import Best
from tuneoff_adapters.optuna.plan import StudyPlan


def best_of(study: Study, plan: StudyPlan) -> Best | None:
    """Return the study's best trial, or None where none completed (Optuna raises ValueError then)."""
    if not study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        return None
    best = study.best_trial
    return Best(
        trial_id=plan.trial_id(best.number, best.user_attrs),
        configuration=plan.translation.decode(best.params),
        value=best.value,
    )
