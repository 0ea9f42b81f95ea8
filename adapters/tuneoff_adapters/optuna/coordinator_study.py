"""The study in the coordinator: created, told what earlier executions did, given listed configurations; its own best trial."""

from __future__ import annotations

import optuna
from optuna.samplers import QMCSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from tuneoff.adapter import Best
from tuneoff.experiment.translation import LIST_INDEX, ListTranslation
from tuneoff.record.history import NO_HISTORY, FinishedTrial, History, begun, not_begun
from tuneoff_adapters.optuna.distributions import distributions
from tuneoff_adapters.optuna.plan import RETRY_ATTEMPT, RETRY_OF, StudyPlan
from tuneoff_adapters.optuna.samplers import make_sampler
from tuneoff_adapters.optuna.storages import open_storage

_STATES = {"completed": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "failed": TrialState.FAIL}


def create_study(plan: StudyPlan, history: History = NO_HISTORY) -> Study:
    """Create the study, tell it what a continued run did before, and enqueue the listed configurations."""
    direction = StudyDirection.MAXIMIZE if plan.mode == "max" else StudyDirection.MINIMIZE
    study = optuna.create_study(study_name=plan.study_name, storage=open_storage(plan), direction=direction)
    if history:
        _tell(study, plan, history)
    if isinstance(plan.translation, ListTranslation):
        left = not_begun(plan.translation.configurations, history)
        for index in left[: plan.trials - len(history.unfinished)]:
            study.enqueue_trial({LIST_INDEX: index})
    return study


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


def _tell(study: Study, plan: StudyPlan, history: History) -> None:
    """Add the finished trials, and enqueue those that are to be begun again, in the order of their numbers.

    So Optuna's numbers of them are tuneoff's, which a bracket of its Hyperband is drawn by, as long as no event was lost.
    """
    for trial in begun(history):
        number = int(trial.trial_id[1:])
        if isinstance(trial, FinishedTrial):
            study.add_trial(_frozen(plan, trial, number))
        else:
            attributes = {RETRY_OF: number, RETRY_ATTEMPT: trial.attempt}
            study.enqueue_trial(plan.translation.encode(trial.configuration), user_attrs=attributes)
    if plan.sampler.name == "sobol":
        _advance(study, plan, history.count)


def _advance(study: Study, plan: StudyPlan, points: int) -> None:
    """Pass over as many points of the sequence as there were trials: the study counts them, and a new one counts from 0.

    Trials that were drawn at random, as the first one, took no point: so a few are passed over too many, and none is repeated.
    """
    sampler = make_sampler(plan, 0)
    told = study.get_trials(deepcopy=False)
    assert isinstance(sampler, QMCSampler)
    space = sampler.infer_relative_search_space(study, told[0])
    for _ in range(points if space else 0):
        sampler._find_sample_id(study, space)


def _frozen(plan: StudyPlan, trial: FinishedTrial, number: int) -> FrozenTrial:
    values = {epoch: value for epoch, value in trial.values if value is not None}
    result = trial.value
    if trial.state == "pruned":  # the last report, as `optimize` has it
        result = values[max(values)] if values else None
    return create_trial(
        state=_STATES[trial.state],
        value=result if trial.state != "failed" else None,
        params=plan.translation.encode(trial.configuration),
        distributions=distributions(plan.translation.native),
        user_attrs={RETRY_OF: number},
        intermediate_values=values,
    )
