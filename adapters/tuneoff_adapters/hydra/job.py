"""The application, which Hydra runs in joblib's processes: a trial per job. Importing this module imports Hydra, not Optuna."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from tuneoff.base.identity import trial_name
from tuneoff.errors import TrialFailedError
from tuneoff.experiment.translation import Translation
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.run.trial.children import hold_children
from tuneoff.run.trial.run_trial import Decision, run_trial
from tuneoff.run.trial.trial_process import trial_process

SPACE = "space"  # the key of a trial's values in its configuration


@dataclass(frozen=True, slots=True)
class Job:
    """Runs the trial of the job's number, and returns its value."""

    context_path: str
    translation: Translation

    def __call__(self, config: DictConfig) -> float:
        number = HydraConfig.get().job.num
        context = _context(self.context_path)
        trial_process(context, slot=number % context.slots)  # made with the process's first job
        outcome = run_trial(
            context,
            trial_name(number),
            self.translation.decode(config[SPACE]),
            lambda epoch, metrics: Decision.CONTINUE,
            framework_id=str(number),
        )
        if outcome.state != "completed" or outcome.value is None:
            raise TrialFailedError(outcome.cause or outcome.state)
        return outcome.value


@functools.lru_cache(maxsize=1)
def _context(path: str) -> TrialContext:
    """Read the run's context, and hold together what trials start: once per process."""
    context = TrialContext.read(path)
    hold_children(context.execution_id)
    return context
