"""Tell a new study what the run's earlier executions did, by the ways that Optuna documents for it."""

from __future__ import annotations

from optuna.samplers import QMCSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from tuneoff.record.history import FinishedTrial, History, begun
from tuneoff_adapters.optuna.distributions import distributions
from tuneoff_adapters.optuna.plan import RETRY_ATTEMPT, RETRY_OF, StudyPlan
from tuneoff_adapters.optuna.samplers import make_sampler

_STATES = {"completed": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "failed": TrialState.FAIL}


def tell(study: Study, plan: StudyPlan, history: History) -> None:
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
