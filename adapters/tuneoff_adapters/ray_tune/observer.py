"""Tune's callback in the driver: what Ray decided and saw goes into the events. Imports Ray."""

from __future__ import annotations

from typing import Any

from ray.tune import Callback

from tuneoff_adapters.ray_tune.failures import cause_of_death, error_of, is_death
from tuneoff_adapters.ray_tune.keys import EPOCH, OBJECTIVE
from tuneoff_adapters.ray_tune.signals import DeferredTermination
from tuneoff_adapters.ray_tune.submission import Submission, Submissions


class Observer(Callback):  # type: ignore[misc]
    """Writes stops and deaths, announces the next attempt at a trial, and lets a SIGTERM through between two steps."""

    def __init__(self, submissions: Submissions, termination: DeferredTermination) -> None:
        self._submissions = submissions
        self._termination = termination
        self._events = submissions.context.events
        self._epochs = submissions.context.spec.experiment.budget.epochs_per_trial

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def on_step_begin(self, iteration: int, trials: list[Any], **info: Any) -> None:
        self._termination.check()  # some ten times a second

    def on_trial_result(self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any) -> None:
        submission = self._submissions[trial.trial_id]
        if OBJECTIVE in result:
            self._submissions.note(submission, result[OBJECTIVE])
        epoch = result.get(EPOCH, 0)
        if result.get("done") and epoch < self._epochs:  # the scheduler said STOP: a natural end comes without a result
            submission.is_stopped = True
            self._events.write("stop_decided", trial=submission.trial_id, epoch=epoch)

    def on_trial_recover(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self._died(self._submissions[trial.trial_id])
        self._submissions.submit_again(trial.trial_id)

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self._died(self._submissions[trial.trial_id])

    def _died(self, submission: Submission) -> None:
        error = error_of(submission.ray_trial)
        if error is None or not is_death(error):
            return  # it raised: the trial has written its own end
        cause = cause_of_death(error)
        self._events.write("worker_died", trial=submission.trial_id, cause=cause, attempt=submission.attempt)
