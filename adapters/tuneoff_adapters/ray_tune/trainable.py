"""What Ray runs in its actors: one trial after another. Imported by name in every actor."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

from ray.tune import Trainable
from ray.tune.result import RESULT_DUPLICATE

from tuneoff.base.files import open_to_change
from tuneoff.base.layout import LOG
from tuneoff.errors import TrialFailedError
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.run.trial.children import end_children, end_tracker, hold_children
from tuneoff.run.trial.run_trial import Decision, Steps, TrialOutcome, trial_steps
from tuneoff.run.trial.trial_process import trial_process
from tuneoff_adapters.ray_tune.config_keys import EPOCH, OBJECTIVE, TASK, cancellation


class TrialTrainable(Trainable):  # type: ignore[misc]
    """Runs the trial that `config[TASK]` names, an epoch at each call of Ray.

    Ray calls a class in the actor's main thread, where a training may set signal handlers as in every other framework; a function
    it would run in another thread. What Ray is told, and when, is the same.
    """

    _steps: Steps | None

    def setup(self, config: dict[str, Any]) -> None:
        self._task, self._steps, self._has_reported = config[TASK], None, False

    def step(self) -> dict[str, Any]:
        """Run the trial up to its next report.

        Raises:
            TrialFailedError: the trial failed, or reported nothing: Ray's schedulers cannot bear a trial without a result.
        """
        task = self._task
        context = _prepare(task["context"])
        try:
            if self._steps is None:
                self._steps = trial_steps(context, task["trial"], task["configuration"], attempt=task["attempt"])
                epoch, metrics = next(self._steps)
            else:
                epoch, metrics = self._steps.send(Decision.CONTINUE)
        except StopIteration as stop:
            outcome: TrialOutcome = stop.value
        else:
            self._has_reported = True
            return {OBJECTIVE: metrics[context.metric], EPOCH: epoch}
        if outcome.state == "failed":
            raise TrialFailedError(outcome.cause or "the trial failed")
        if not self._has_reported:
            raise TrialFailedError(outcome.cause or "the trial ended before its first report")
        if outcome.state == "cancelled":
            path = cancellation(context.run_dir, task["trial"], task["attempt"])
            path.parent.mkdir(exist_ok=True)
            path.touch()
        return {RESULT_DUPLICATE: True}  # what Ray takes for the end of a function that had reported all before

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Take the next trial: Ray has stopped the one before, if that has not ended."""
        self.cleanup()
        self.setup(new_config)
        return True

    def cleanup(self) -> None:
        if self._steps is not None:
            self._steps.close()

    def stop(self) -> None:
        """End what a training has kept: Ray kills all children at once, and so what would remove their semaphores."""
        super().stop()
        end_children()
        end_tracker()


@functools.lru_cache(maxsize=1)
def _prepare(context_path: str) -> TrialContext:
    """Read the run's context, reserve a slot and import what the workload names, once per process and before its first trial.

    What the process prints goes to the run's log from now on: Ray's own is in a folder that is removed.
    """
    context = TrialContext.read(context_path)
    log = open_to_change(Path(context.run_dir, LOG), os.O_WRONLY | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    hold_children(context.execution_id)
    trial_process(context)
    return context
