"""DeepHyper's search and stopper of a run; importing it imports DeepHyper."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import ConfigSpace
from deephyper.evaluator import MaximumJobsSpawnReached
from deephyper.hpo import CBO, ExperimentalDesignSearch, HpProblem, RandomSearch, Search
from deephyper.stopper import MedianStopper, Stopper, SuccessiveHalvingStopper

from tuneoff.base import clock
from tuneoff.base.identity import configuration_digest
from tuneoff.experiment.spec import ExperimentSpec
from tuneoff.experiment.strategies import LISTED
from tuneoff.experiment.translation import Native, NativeIndex, Translation, given_values
from tuneoff.record.run_context import RunContext
from tuneoff.run.trial.trial_process import TrialBudget


class BudgetedSearch(Search):  # type: ignore[misc]
    """Asks and tells `inner`, and ends the search once the budget of seconds or epochs is used up."""

    def __init__(self, context: RunContext, inner: Search, stopper: Stopper | None) -> None:
        super().__init__(HpProblem(), log_dir=str(context.work_dir), stopper=stopper)
        self._inner, self._events, self._budget = inner, context.events, TrialBudget(context.trial_context)

    def _ask(self, n: int = 1) -> list[dict[str, Any]]:
        if self._budget.is_used_up():
            raise MaximumJobsSpawnReached  # ends the search in order
        started_ns = clock.monotonic_ns()
        proposals: list[dict[str, Any]] = self._inner.ask(n)
        self._events.write("stage", name="ask", duration_ns=clock.monotonic_ns() - started_ns)
        return proposals

    def _tell(self, results: list[tuple[dict[str, Any], Any]]) -> None:
        started_ns = clock.monotonic_ns()
        self._inner.tell(results)
        self._events.write("stage", name="tell", duration_ns=clock.monotonic_ns() - started_ns)


class ScriptedStopper(Stopper):  # type: ignore[misc]
    """Stops given configurations after given epochs: equal decisions in every framework."""

    def __init__(self, experiment: ExperimentSpec, translation: Translation) -> None:
        super().__init__(max_steps=experiment.budget.epochs_per_trial)
        self._stops, self._translation = experiment.stops, translation

    def stop(self) -> bool:
        last_epoch = self._stops.get(configuration_digest(self._translation.decode(self.job.parameters)))
        return last_epoch is not None and self.step >= last_epoch


def make_search(context: RunContext, translation: Translation) -> Search:
    """Return DeepHyper's search of a run's sampler, seeded, with the configurations that it is given as initial points."""
    spec, sampler = context.spec, context.spec.experiment.sampler.name
    problem, points = make_problem(translation.native), given_values(spec)
    arguments: dict[str, Any] = {"random_state": spec.sampler_seed, "log_dir": str(context.work_dir)}
    if sampler == "random" and not points:
        return RandomSearch(problem, **arguments)
    arguments |= {"initial_points": points, **({"surrogate_model": "GP", "acq_func": "UCB"} if sampler == "gp" else {})}
    if sampler in ("random", *LISTED):
        return ExperimentalDesignSearch(problem, n_points=spec.experiment.budget.trials, **arguments)
    drawn = max(2 * len(problem) + 1, len(points))  # its default, after which it leaves out what is left of the initial points
    return CBO(problem, n_initial_points=drawn, **arguments)


def make_problem(native: Mapping[str, Native]) -> HpProblem:
    """Return the search space: exactly the native dimensions."""
    problem = HpProblem()
    for name, kind in native.items():
        if not isinstance(kind, NativeIndex):
            problem.add(ConfigSpace.Float(name, kind.bounds, log=kind.log))
        elif kind.ordered:
            problem.add(ConfigSpace.Integer(name, (0, max(kind.size, 2) - 1)))  # a list may have one configuration
        else:
            problem.add(ConfigSpace.Categorical(name, list(range(kind.size))))
    return problem


def make_stopper(experiment: ExperimentSpec, translation: Translation) -> Stopper | None:
    """Return the stopper of a run's pruner, with the rungs of the other frameworks."""
    options, epochs = experiment.pruner.options, experiment.budget.epochs_per_trial
    match experiment.pruner.name:
        case "asha":
            factor, first = options.get("reduction_factor", 3), options.get("first_rung_epochs", 1)
            rate = math.log(first, factor) - 1e-9  # not by `min_steps`, which is added; rounding moves no rung beyond its epoch
            return SuccessiveHalvingStopper(max_steps=epochs, reduction_factor=factor, min_early_stopping_rate=rate)
        case "median":
            return MedianStopper(epochs, options.get("first_epoch", 1), options.get("min_trials", 5) + 1)  # it counts its own
        case "scripted":
            return ScriptedStopper(experiment, translation)
    return None
