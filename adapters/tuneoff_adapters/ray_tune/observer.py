"""What Ray decided and saw of trials: failures, which may be tried again, and a callback that writes the events. Imports Ray."""

from __future__ import annotations

import contextlib
import pickle
from pathlib import Path
from typing import Any

from ray import cloudpickle
from ray.exceptions import RayActorError
from ray.tune import Callback, Stopper
from ray.tune.experiment import Trial

from tuneoff.errors import TrialFailedError
from tuneoff_adapters.ray_tune.config_keys import EPOCH, OBJECTIVE
from tuneoff_adapters.ray_tune.offers import CAPABILITIES
from tuneoff_adapters.ray_tune.session import DeferredTermination
from tuneoff_adapters.ray_tune.submission import Submission, Submissions

_DETAIL = "Worker exit detail: "


def retried_trial_class(submissions: Submissions) -> type[Any]:
    """Return the class of Ray trials of which only faults of the framework and of the infrastructure are tried again.

    Ray would try every failure again, up to `max_failures`. It asks `should_recover` after it has written the error down
    and before it decides.
    """

    class RetriedTrial(Trial):  # type: ignore[misc]
        def should_recover(self) -> bool:
            may_recover = may_retry(submissions, submissions[self.trial_id])  # asked for each failure, whatever Ray says
            return may_recover and bool(super().should_recover()) and not submissions.budget.is_used_up()

    return RetriedTrial


def may_retry(submissions: Submissions, submission: Submission) -> bool:
    """Tell whether the last failure of a trial is not a fault of its workload, and retries are left for a death.

    To be asked once for each failure. The slot of a death is not known here: the trial's process chose it.
    """
    error = error_of(submission.ray_trial)
    if not is_death(error):
        return not isinstance(_origin(error), TrialFailedError)
    return submissions.retries.may_retry(submission.trial_id, submission.attempt, exit_code=None, slot=None)  # Ray tells none


def error_of(ray_trial: Any) -> BaseException | None:
    """Return the error that Ray wrote down for a trial's last failure, or None."""
    with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):
        if ray_trial.pickled_error_file:
            error: BaseException = cloudpickle.loads(Path(ray_trial.pickled_error_file).read_bytes())
            return error
    return None


def is_death(error: BaseException | None) -> bool:
    """Tell whether the trial's process ended, where it did not raise."""
    return isinstance(error, RayActorError)


def _origin(error: BaseException | None) -> BaseException | None:
    """Return what the trainable raised, out of Ray's wrappings."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, BaseException) else error


class GoalStopper(Stopper):  # type: ignore[misc]
    """Stops all trials once one has reported a value that meets the goal."""

    def __init__(self, submissions: Submissions) -> None:
        self._submissions = submissions

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        submissions = self._submissions
        if not submissions.is_goal_met and submissions.context.spec.experiment.objective.is_met(result.get(OBJECTIVE)):
            submissions.is_goal_met = True
            for other in submissions.all():  # what runs on is ended before its last epoch
                other.is_stopped |= other.ray_trial.trial_id != trial_id and not other.ray_trial.is_finished()
            trial = submissions[trial_id].trial_id
            submissions.context.events.write("goal_met", trial=trial, by=CAPABILITIES.stops_at_goal)
        return submissions.is_goal_met

    def stop_all(self) -> bool:
        return self._submissions.is_goal_met


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
        is_by_scheduler = result.get("done") and not self._submissions.is_goal_met  # a natural end comes without a result
        if is_by_scheduler and epoch < self._epochs:
            submission.is_stopped = True
            self._events.write("stop_decided", trial=submission.trial_id, epoch=epoch)

    def on_trial_recover(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        submission = self._submissions[trial.trial_id]
        self._died(submission)
        submission.task["attempt"] += 1
        submission.ray_trial.invalidate_json_state()
        self._submissions.context.submitted(
            submission.trial_id, submission.task["configuration"], framework_id=trial.trial_id, attempt=submission.attempt
        )

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self._died(self._submissions[trial.trial_id])

    def _died(self, submission: Submission) -> None:
        """Write the end of an attempt that could not write its own: its process died, or something failed around the trial."""
        error = _origin(error_of(submission.ray_trial))
        if isinstance(error, TrialFailedError):
            return
        text = str(error or "").strip()
        first = text.splitlines()[0] if text else "the actor died" if is_death(error) else "Ray names no reason"
        detail = text.partition(_DETAIL)[2].partition(". ")[0].splitlines()
        kind = f"{type(error).__name__}: " if error is not None else ""
        cause = f"{kind}{detail[0] if detail else first}"
        self._events.write("worker_died", trial=submission.trial_id, cause=cause, attempt=submission.attempt)
