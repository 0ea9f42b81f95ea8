"""Pruners of Optuna with tuneoff's options: steps are epochs counted from 1, so the rungs are those of the other frameworks."""

from __future__ import annotations

from collections.abc import Mapping

from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner, SuccessiveHalvingPruner
from optuna.study import Study
from optuna.trial import FrozenTrial

from tuneoff.base.identity import configuration_digest
from tuneoff.experiment.translation import Translation
from tuneoff_adapters.optuna.plan import StudyPlan


def make_pruner(plan: StudyPlan) -> BasePruner:
    """Return the pruner of a plan, whose options are complete."""
    options = {"first_rung_epochs": 1, "reduction_factor": 3, "brackets": 3, "first_epoch": 1, "min_trials": 5}
    options.update(plan.pruner.options)
    match plan.pruner.name:
        case "none":
            return NopPruner()  # Optuna's own default is the median
        case "asha":
            return SuccessiveHalvingPruner(
                min_resource=options["first_rung_epochs"],
                reduction_factor=options["reduction_factor"],
                min_early_stopping_rate=0,
            )
        case "hyperband":
            return HyperbandPruner(
                min_resource=options["first_rung_epochs"],
                max_resource=max_resource(options["first_rung_epochs"], options["reduction_factor"], options["brackets"]),
                reduction_factor=options["reduction_factor"],
            )
        case "median":
            return MedianPruner(n_startup_trials=options["min_trials"], n_warmup_steps=options["first_epoch"])
        case _:  # scripted
            return ScriptedPruner(plan.translation, plan.stops)


def max_resource(first_rung_epochs: int, reduction_factor: int, brackets: int) -> int:
    """Return the `max_resource` of which Optuna makes exactly this many brackets; it serves for nothing else there.

    Optuna's count is floor(log(max / min, factor)) + 1 in floats, which misses exact powers (243 by 3 gives 5 instead of 6):
    so not the power itself, but a number well above it.
    """
    power: int = first_rung_epochs * reduction_factor ** (brackets - 1)
    return power + power * (reduction_factor - 1) // 2


class ScriptedPruner(BasePruner):
    """Stops given configurations after given epochs: equal decisions in every framework."""

    def __init__(self, translation: Translation, stops: Mapping[str, int]) -> None:
        self._translation = translation
        self._stops = stops

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        step = trial.last_step
        if step is None:
            return False
        last_epoch = self._stops.get(configuration_digest(self._translation.decode(trial.params)))
        return last_epoch is not None and step >= last_epoch
