"""Submissions: what Ray's searcher hands over for execution, under the names of both sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tuneoff.base import clock
from tuneoff.base.identity import configuration_digest, trial_name
from tuneoff.experiment.translation import Translation
from tuneoff.run.trial.faults import Retries
from tuneoff.run.trial.trial_process import TrialBudget
from tuneoff_adapters.ray_tune.config_keys import TASK

if TYPE_CHECKING:
    from tuneoff.record.run_context import RunContext


@dataclass(slots=True, kw_only=True)
class Submission:
    """One trial under both names, and what the driver knows of it."""

    trial_id: str
    digest: str
    task: dict[str, Any]
    ray_trial: Any
    best: float | None = None  # over the epochs of all attempts that Ray was told of
    is_stopped: bool = False  # by Ray, before its last epoch

    @property
    def attempt(self) -> int:
        attempt: int = self.task["attempt"]
        return attempt


class Submissions:
    """The trials of a run by Ray's id, numbered in the order in which the searcher gave them."""

    def __init__(self, context: RunContext, translation: Translation) -> None:
        self.context = context
        self._translation = translation
        self.keys = {f"p{number}": name for number, name in enumerate(translation.native)}  # Ray splits names at "/"
        self._by_ray_id: dict[str, Submission] = {}
        self.is_goal_met = False
        self.budget = TrialBudget(context.trial_context)
        self.retries = Retries(context.trial_context, context.spec.experiment.failures.retries)

    def __getstate__(self) -> dict[str, Any]:
        return {}  # Tune pickles searchers, schedulers and callbacks for `Tuner.restore`, which is not used

    def __getitem__(self, ray_id: str) -> Submission:
        return self._by_ray_id[ray_id]

    def all(self) -> list[Submission]:
        return list(self._by_ray_id.values())

    def submit(self, ray_trial: Any, asked_ns: int) -> Submission:
        """Number a new trial of Ray's, put its task into its config, and announce it; `asked_ns`: when the searcher was asked."""
        trial_id = trial_name(len(self._by_ray_id))
        configuration = self.decode(ray_trial.config)
        task = {
            "context": str(self.context.trial_context.path),
            "trial": trial_id,
            "attempt": 1,
            "configuration": configuration,
        }
        ray_trial.config[TASK] = task
        ray_trial.invalidate_json_state()
        submission = Submission(trial_id=trial_id, digest=configuration_digest(configuration), task=task, ray_trial=ray_trial)
        self._by_ray_id[ray_trial.trial_id] = submission
        duration_ns = clock.monotonic_ns() - asked_ns
        self.context.submitted(trial_id, configuration, framework_id=ray_trial.trial_id, attempt=submission.attempt)
        self.context.events.write("stage", name="ask", duration_ns=duration_ns, trial=trial_id)
        return submission

    def decode(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return core's configuration for the values that Ray chose."""
        return self._translation.decode({name: config[key] for key, name in self.keys.items()})

    def note(self, submission: Submission, value: float) -> None:
        """Keep the best value that a trial reported."""
        if self.context.spec.experiment.objective.is_better(value, than=submission.best):
            submission.best = value
