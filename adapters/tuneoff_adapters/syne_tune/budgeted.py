"""A scheduler around Syne Tune's own: budget, retries, scripted stops, earlier trials; importing it imports Syne Tune."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import Any

from syne_tune.backend.trial_status import Trial
from syne_tune.optimizer.scheduler import SchedulerDecision, TrialScheduler, TrialSuggestion

from tuneoff.base import clock
from tuneoff.base.identity import configuration_digest
from tuneoff.experiment.translation import ListTranslation, Translation
from tuneoff.record.history import FinishedTrial, History, begun
from tuneoff.record.run_context import RunContext
from tuneoff_adapters.continued import trial_names
from tuneoff_adapters.syne_tune.dispatch import Dispatch, Task
from tuneoff_adapters.syne_tune.offers import DRAWN_AT_RANDOM
from tuneoff_adapters.syne_tune.reporter import OBJECTIVE, TIME_ATTRIBUTE

FIRST_NUMBER = 1_000_000  # of trials of earlier executions: the tuner counts its own from 0


class BudgetedScheduler(TrialScheduler):  # type: ignore[misc]
    """Passes everything on to `inner`, and

    - ends the tuning by suggesting nothing after the budget of proposals (Syne Tune's stop criteria all overshoot);
    - suggests a failed trial again where it may be retried, not counted as a proposal;
    - stops the listed configurations at their epoch (`pruner: scripted`);
    - never stops a trial after its last epoch: it ends by itself, and is complete;
    - in a continued run tells `inner` what is finished: a sampler that draws at random has all drawn again, and what is
      finished is passed over; another one gets all at once, and was given what is to be begun again as its first points.
    """

    def __init__(self, context: RunContext, dispatch: Dispatch, inner: Any, translation: Translation) -> None:
        super().__init__(random_seed=context.spec.sampler_seed)
        experiment = context.spec.experiment
        self._context, self._dispatch, self._inner, self._translation = context, dispatch, inner, translation
        self._past = Past(inner, context.history, translation)
        self._is_redrawn = experiment.sampler.name in DRAWN_AT_RANDOM
        self._first_attempts = context.trial_context.first_attempts
        listed = len(translation.configurations) if isinstance(translation, ListTranslation) else experiment.budget.trials
        self._trials = min(listed, experiment.budget.trials)
        self._stops = experiment.stops if experiment.pruner.name == "scripted" else {}
        self._epochs = experiment.budget.epochs_per_trial
        self._mode = experiment.objective.mode
        self._proposed = 0
        if not self._is_redrawn:
            self._trials -= len(context.finished)
            self._past.tell_all()
        self._names = list(itertools.islice(trial_names(context.history, self._is_redrawn), self._trials))

    def suggest(self) -> Any:
        """Return the next suggestion, or None: there is none now, and none later unless a running trial fails."""
        if self._dispatch.budget.is_used_up():
            return None
        task = self._dispatch.next_retry() or self._propose()
        if task is None:
            return None
        self._dispatch.propose(task)
        return TrialSuggestion.start_suggestion(dict(task.native))

    def on_trial_add(self, trial: Trial) -> None:
        self._inner.on_trial_add(trial)

    def on_trial_result(self, trial: Trial, result: dict[str, Any]) -> str:
        """Return STOP or CONTINUE."""
        number, epoch = trial.trial_id, int(result[TIME_ATTRIBUTE])
        decision = self._inner.on_trial_result(trial, result)
        last_epoch = self._stops.get(self._dispatch.tasks[number].digest)
        is_stop = decision == SchedulerDecision.STOP or (last_epoch is not None and epoch >= last_epoch)
        if not is_stop or epoch >= self._epochs:
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
        return self._mode

    def metadata(self) -> dict[str, Any]:
        """Return what the tuner stores in its folder."""
        return {
            "scheduler_name": type(self._inner).__name__,
            "metric_names": self.metric_names(),
            "metric_mode": self.metric_mode(),
        }

    def _propose(self) -> Task | None:
        if self._proposed >= self._trials:
            return None
        started_ns = clock.monotonic_ns()
        suggestion = self._inner.suggest()
        while suggestion is not None and self._is_redrawn and self._past.tell(self._names[self._proposed]):
            self._proposed += 1
            suggestion = self._inner.suggest() if self._proposed < self._trials else None
        if suggestion is None and self._proposed >= self._trials:
            return None
        if suggestion is None:
            self._context.flag("sampler_exhausted", f"Syne Tune proposed {self._proposed} of {self._trials} configurations")
            self._trials = self._proposed
            return None
        configuration = self._translation.decode(suggestion.config)
        trial_id = self._names[self._proposed]
        task = Task(
            trial_id=trial_id,
            configuration=configuration,
            digest=configuration_digest(configuration),
            native=suggestion.config,
            attempt=self._first_attempts.get(trial_id, 1),
        )
        self._proposed += 1
        self._context.events.write("stage", name="ask", duration_ns=clock.monotonic_ns() - started_ns, trial=task.trial_id)
        return task


class Past:
    """The finished trials of a continued run, each of which the scheduler is told once."""

    def __init__(self, scheduler: Any, history: History, translation: Translation) -> None:
        self._scheduler, self._translation = scheduler, translation
        self._finished = {trial.trial_id: trial for trial in begun(history) if isinstance(trial, FinishedTrial)}
        self._told = 0

    def tell_all(self) -> None:
        """Tell every finished trial, in the order of their numbers."""
        for name in self._finished:
            self.tell(name)

    def tell(self, trial_id: str) -> bool:
        """Tell a trial as it went, if it is a finished one, and return whether it is."""
        finished = self._finished.get(trial_id)
        if finished is None:
            return False
        number = FIRST_NUMBER + self._told
        self._told += 1
        trial = Trial(number, self._translation.encode(finished.configuration), datetime.now(UTC))
        self._scheduler.on_trial_add(trial)
        result: dict[str, Any] = {}
        for epoch, value in finished.values:
            if value is not None:
                result = {TIME_ATTRIBUTE: epoch, OBJECTIVE: value}
                self._scheduler.on_trial_result(trial, result)
        if finished.state == "failed" or not result:
            self._scheduler.on_trial_error(trial)
        elif finished.state == "pruned":
            self._scheduler.on_trial_remove(trial)
        else:
            self._scheduler.on_trial_complete(trial, result)
        return True
