"""A scheduler around Syne Tune's own: budget, retries, scripted stops, draws without a tuner; importing it imports Syne Tune."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from syne_tune.backend.trial_status import Trial
from syne_tune.optimizer.scheduler import SchedulerDecision, TrialScheduler, TrialSuggestion

from tuneoff.base import clock
from tuneoff.base.identity import configuration_digest, trial_name
from tuneoff.experiment.translation import FrameworkSpace, ListTranslation, Translation, translation_of
from tuneoff.record.run_context import RunContext
from tuneoff_adapters.syne_tune.dispatch import Dispatch, TrialTask
from tuneoff_adapters.syne_tune.reporter import OBJECTIVE, TIME_ATTRIBUTE
from tuneoff_adapters.syne_tune.schedulers import domains, make_scheduler

NUMBERED = hasattr(TrialScheduler, "_suggest")  # 0.13: a scheduler is told the number of the trial that it is asked for


class BudgetedScheduler(TrialScheduler):  # type: ignore[misc]
    """Passes everything on to `inner`, and

    - ends the tuning by suggesting nothing after the budget of proposals (Syne Tune's stop criteria all overshoot);
    - suggests a failed trial again where it may be retried, not counted as a proposal;
    - stops the listed configurations at their epoch (`pruner: scripted`);
    - never stops a trial after its last epoch: it ends by itself, and is complete;
    - never one whose value ends the run at its goal, which is complete too.
    """

    def __init__(self, context: RunContext, dispatch: Dispatch, inner: Any, translation: Translation) -> None:
        arguments: dict[str, Any] = {"config_space": {}} if NUMBERED else {"random_seed": context.spec.sampler_seed}
        super().__init__(**arguments)
        experiment = context.spec.experiment
        self._context, self._dispatch, self._inner, self._translation = context, dispatch, inner, translation
        listed = len(translation.configurations) if isinstance(translation, ListTranslation) else experiment.budget.trials
        self._trials = min(listed, experiment.budget.trials)
        self._stops = experiment.stops if experiment.pruner.name == "scripted" else {}
        self._epochs = experiment.budget.epochs_per_trial
        self._objective = experiment.objective
        self._proposed = 0
        self._at_goal: set[int] = set()

    def suggest(self, trial_id: int | None = None) -> Any:
        """Return the next suggestion, or None: there is none now, and none later unless a running trial fails.

        `trial_id`: what 0.13 says, the next number.
        """
        if self._dispatch.budget.is_used_up():
            return None
        task = self._dispatch.retries.popleft() if self._dispatch.retries else None
        if task is None:
            if self._proposed >= self._trials:
                return None
            started_ns = clock.monotonic_ns()
            suggestion = self._inner.suggest(*([len(self._dispatch.tasks)] if NUMBERED else []))
            if suggestion is None:
                self._context.flag("sampler_exhausted", f"Syne Tune proposed {self._proposed} of {self._trials} configurations")
                self._trials = self._proposed
                return None
            configuration, name = self._translation.decode(suggestion.config), trial_name(self._proposed)
            digest = configuration_digest(configuration)
            task = TrialTask(trial_id=name, configuration=configuration, digest=digest, native=suggestion.config)
            self._proposed += 1
            self._context.events.write("stage", name="ask", duration_ns=clock.monotonic_ns() - started_ns, trial=name)
        self._dispatch.upcoming = task
        return TrialSuggestion.start_suggestion(dict(task.native))

    def on_trial_add(self, trial: Trial) -> None:
        self._inner.on_trial_add(trial)

    def on_trial_result(self, trial: Trial, result: dict[str, Any]) -> str:
        """Return STOP or CONTINUE."""
        number, epoch = trial.trial_id, int(result[TIME_ATTRIBUTE])
        decision = self._inner.on_trial_result(trial, result)
        last_epoch = self._stops.get(self._dispatch.tasks[number].digest)
        is_stop = decision == SchedulerDecision.STOP or (last_epoch is not None and epoch >= last_epoch)
        if self._objective.stop and self._objective.is_met(result.get(OBJECTIVE)):
            self._at_goal.add(number)  # which the tuner asks about after all results of a poll
        if not is_stop or number in self._at_goal or epoch >= self._epochs:
            return str(SchedulerDecision.CONTINUE)
        self._dispatch.stop_decided(number, epoch)
        return str(SchedulerDecision.STOP)

    def on_trial_complete(self, trial: Trial, result: dict[str, Any]) -> None:
        self._inner.on_trial_complete(trial, result)

    def on_trial_remove(self, trial: Trial) -> None:
        self._inner.on_trial_remove(trial)

    def on_trial_error(self, trial: Trial) -> None:
        """Tell `inner`, and queue the trial again if that is allowed."""
        self._inner.on_trial_error(trial)
        self._dispatch.retry(trial.trial_id)

    def metric_names(self) -> list[str]:
        return [OBJECTIVE]

    def metric_mode(self) -> str:
        return self._objective.mode

    def metadata(self) -> dict[str, Any]:
        """Return what the tuner stores in its folder."""
        return {
            "scheduler_name": type(self._inner).__name__,
            "metric_names": self.metric_names(),
            "metric_mode": self.metric_mode(),
        }


def draw(context: RunContext, count: int) -> Iterator[Mapping[str, object]]:
    """Yield the configurations of at most `count` proposals, each as its trial would get it."""
    translation = translation_of(context.spec)
    dispatch = Dispatch(context)
    scheduler = BudgetedScheduler(context, dispatch, make_scheduler(context.spec, translation), translation)
    for number in range(count):
        if scheduler.suggest() is None:
            return
        yield dispatch.start(number).configuration


def framework_space(context: RunContext) -> FrameworkSpace:
    """Return the space as Syne Tune has it."""
    translation = translation_of(context.spec)
    ends = {name: _ends(domain) for name, domain in domains(translation.native).items()}
    return FrameworkSpace(ends=ends, decode=translation.decode, encode=translation.encode)


def _ends(domain: Any) -> tuple[Any, Any]:
    from syne_tune.config_space import Categorical

    if isinstance(domain, Categorical):
        return domain.categories[0], domain.categories[-1]
    return domain.lower, domain.upper  # both are drawn
