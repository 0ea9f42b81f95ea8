"""Failures as Ray sees them: what a trial died of, and whether it may be tried again. Imports Ray."""

from __future__ import annotations

import contextlib
import pickle
from pathlib import Path
from typing import Any

from ray import cloudpickle
from ray.exceptions import RayActorError
from ray.tune.experiment import Trial

from tuneoff.errors import TrialFailedError
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
    """Tell whether the last failure of a trial is no fault of its workload, and retries are left for a death.

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


def cause_of_death(error: BaseException) -> str:
    """Return what Ray says of a death, in one line."""
    text = str(error)
    first = text.strip().splitlines()[0] if text.strip() else "the actor died"
    detail = text.partition(_DETAIL)[2].partition(". ")[0].splitlines()
    return f"{type(error).__name__}: {detail[0] if detail else first}"


def _origin(error: BaseException | None) -> BaseException | None:
    """Return what the trainable raised, out of Ray's wrappings."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, BaseException) else error
