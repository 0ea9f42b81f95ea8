"""Ray's schedulers for tuneoff's pruners. Imports Ray."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ray.tune.schedulers import ASHAScheduler, FIFOScheduler, MedianStoppingRule, TrialScheduler

from tuneoff.experiment.spec import ExperimentSpec
from tuneoff_adapters.ray_tune.config_keys import EPOCH
from tuneoff_adapters.ray_tune.submission import Submissions


class ScriptedScheduler(FIFOScheduler):  # type: ignore[misc]
    """Stops given configurations at given epochs."""

    def __init__(self, submissions: Submissions, stops: Mapping[str, int]) -> None:
        super().__init__()
        self._submissions = submissions
        self._stops = dict(stops)  # configuration digest -> last epoch

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        last_epoch = self._stops.get(self._submissions[trial.trial_id].digest)
        stop = last_epoch is not None and result.get(EPOCH, 0) >= last_epoch
        decision: str = TrialScheduler.STOP if stop else TrialScheduler.CONTINUE
        return decision


def make_scheduler(experiment: ExperimentSpec, submissions: Submissions) -> Any:
    """Return the scheduler of the experiment's pruner; metric and mode come from the TuneConfig."""
    epochs, options = experiment.budget.epochs_per_trial, experiment.pruner.options
    match experiment.pruner.name:
        case "none":
            return FIFOScheduler()
        case "scripted":
            return ScriptedScheduler(submissions, experiment.stops)
        case "median":
            return MedianStoppingRule(
                time_attr=EPOCH,
                grace_period=options.get("first_epoch", 1),
                min_samples_required=options.get("min_trials", 5),
                min_time_slice=math.inf,  # with too few samples it would pause trials, which then start again at epoch 1
                hard_stop=True,
            )
        case _:  # asha and hyperband
            return ASHAScheduler(
                time_attr=EPOCH,
                max_t=epochs,
                grace_period=options.get("first_rung_epochs", 1),
                reduction_factor=options.get("reduction_factor", 3),
                brackets=options.get("brackets", 3) if experiment.pruner.name == "hyperband" else 1,
                stop_last_trials=False,  # a trial ends by itself after its last epoch
            )
