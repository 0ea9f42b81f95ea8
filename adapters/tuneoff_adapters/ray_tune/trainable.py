"""What Ray runs in its actors: one trial per call. Imported by name in every actor."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from ray import tune

from tuneoff.errors import TrialFailedError
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.run.trial.run_trial import Decision, run_trial
from tuneoff.run.trial.trial_process import trial_process
from tuneoff_adapters.ray_tune.exits import note_cancelled, noted_exit_code
from tuneoff_adapters.ray_tune.keys import EPOCH, OBJECTIVE, TASK


def train(config: dict[str, Any]) -> None:
    """Run the trial that `config[TASK]` names.

    Raises:
        SystemExit: Ray stopped the trial, inside its report; its end is logged by then.
        TrialFailedError: the trial failed, or reported nothing: Ray's schedulers cannot bear a trial without a result.
    """
    task = config[TASK]
    context = _prepare(task["context"])
    stopped = False

    def report(epoch: int, metrics: Mapping[str, float]) -> Decision:
        nonlocal stopped
        try:
            tune.report({OBJECTIVE: metrics[context.metric], EPOCH: epoch})
        except SystemExit:
            stopped = True
            raise
        return Decision.CONTINUE

    try:
        with noted_exit_code(context.run_dir, task["trial"], task["attempt"]):
            outcome = run_trial(context, task["trial"], task["configuration"], report, attempt=task["attempt"])
    except SystemExit as error:
        if stopped:
            raise
        # the workload's own: in this thread Ray would take code 0 for a normal end, and wait for ever
        raise TrialFailedError(f"the trial must not end its process, but called sys.exit({error.code!r})") from error
    outcome.raise_if_failed()
    if outcome.epochs == 0:
        raise TrialFailedError(outcome.cause or "the trial ended before its first epoch")
    if outcome.state == "cancelled":
        note_cancelled(context.run_dir, task["trial"], task["attempt"])


@functools.lru_cache(maxsize=1)
def _prepare(context_path: str) -> TrialContext:
    """Read the run's context, reserve a slot and import what the workload names, once per process and before its first trial."""
    context = TrialContext.read(context_path)
    trial_process(context)
    return context
