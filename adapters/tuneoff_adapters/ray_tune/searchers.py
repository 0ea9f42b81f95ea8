"""Ray's searchers: each announces a trial the moment it hands it over. Imports Ray."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import Any

from ray import tune
from ray.tune.search import ConcurrencyLimiter, SearchGenerator
from ray.tune.search.basic_variant import BasicVariantGenerator

from tuneoff.base import clock
from tuneoff.experiment.spec import RunSpec
from tuneoff.experiment.strategies import LISTED
from tuneoff.experiment.translation import ListTranslation, NativeFloat, NativeIndex, Translation, given_values
from tuneoff_adapters.ray_tune.config_keys import OBJECTIVE
from tuneoff_adapters.ray_tune.observer import retried_trial_class
from tuneoff_adapters.ray_tune.submission import Submissions

BY_SEED_ALONE = ("random", "default", *LISTED)  # samplers whose draws do not depend on results


class Announced:
    """A search algorithm of Ray's, asked for its next trial, which is announced. Its state is not saved."""

    submissions: Submissions

    @functools.cached_property
    def _trial_class(self) -> type[Any]:
        return retried_trial_class(self.submissions)

    def next_trial(self) -> Any:
        """Return a trial, or None; it is finished when the budget is used up."""
        search: Any = super()
        if self.submissions.budget.is_used_up():
            search.set_finished()
            return None
        asked_ns = clock.monotonic_ns()
        trial = search.next_trial()
        if trial is not None:
            if self.submissions.context.spec.experiment.failures.retries > 0:
                trial.__class__ = self._trial_class  # of the same layout: only the answer to "may it be tried again?" differs
            self.submissions.submit(trial, asked_ns)
        return trial

    def save_to_dir(self, dirpath: str, session_str: str) -> None:
        pass


class AnnouncedVariants(Announced, BasicVariantGenerator):  # type: ignore[misc]
    """Ray's own random and grid search."""

    def __init__(self, submissions: Submissions, points: list[dict[str, float | int]], seed: int, max_concurrent: int) -> None:
        super().__init__(points_to_evaluate=points, max_concurrent=max_concurrent, random_state=seed)
        self.submissions = submissions


class AnnouncedSearch(Announced, SearchGenerator):  # type: ignore[misc]
    """Any of Ray's searchers; it learns the best epoch of a trial as its value, which is core's definition."""

    def __init__(self, submissions: Submissions, searcher: Any) -> None:
        super().__init__(searcher)
        self.submissions = submissions

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        submission, events = self.submissions[trial_id], self.submissions.context.events
        if result and submission.best is not None:
            result = {**result, OBJECTIVE: submission.best}
        started = clock.monotonic_ns()
        super().on_trial_complete(trial_id, result=result, error=error)
        events.write("stage", name="tell", duration_ns=clock.monotonic_ns() - started, trial=submission.trial_id)


def param_space(translation: Translation, keys: dict[str, str]) -> dict[str, Any]:
    """Return Ray's search space: exactly the native dimensions, under neutral names.

    A list of configurations becomes a grid over its index, which Ray runs through in order, and once.
    """
    if isinstance(translation, ListTranslation):
        return {key: tune.grid_search(list(range(len(translation.configurations)))) for key in keys}
    space = {key: _domain(translation.native[name]) for key, name in keys.items()}
    return space or {"nothing_to_search": tune.randint(0, 1)}


def _domain(native: Any) -> Any:
    if isinstance(native, NativeFloat):
        return tune.loguniform(native.low, native.high) if native.log else tune.uniform(native.low, native.high)
    if isinstance(native, NativeIndex):
        return tune.randint(0, native.size) if native.ordered else tune.choice(list(range(native.size)))
    return tune.loguniform(*native.bounds)


def make_search(spec: RunSpec, submissions: Submissions) -> Any:
    """Return the search algorithm. At most `workers.count` trials are submitted and not ended: none waits in Ray."""
    experiment, seed = spec.experiment, spec.sampler_seed
    count, name = experiment.workers.count, experiment.sampler.name
    first = [] if name in LISTED else given_values(spec)
    points = [{key: values[name] for key, name in submissions.keys.items()} for values in first]
    if name in BY_SEED_ALONE:
        return AnnouncedVariants(submissions, points, seed, count)
    searcher = optuna_search(name, dict(experiment.sampler.options), seed, points)
    return AnnouncedSearch(submissions, ConcurrencyLimiter(searcher, max_concurrent=count))


def optuna_search(name: str, options: dict[str, Any], seed: int, points: Sequence[dict[str, float | int]] = ()) -> Any:
    """Return Ray's OptunaSearch with a seeded sampler of Optuna; metric and mode come from the TuneConfig."""
    import optuna
    from ray.tune.search.optuna import OptunaSearch

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    samplers: dict[str, Any] = {
        "tpe": optuna.samplers.TPESampler,
        "gp": optuna.samplers.GPSampler,
        "cmaes": optuna.samplers.CmaEsSampler,
        "sobol": optuna.samplers.QMCSampler,
    }
    settings: dict[str, dict[str, Any]] = {
        "cmaes": {"warn_independent_sampling": False},
        # scrambled, as in the Optuna adapter: else every seed gives the same sequence
        "sobol": {"warn_independent_sampling": False, "qmc_type": "sobol", "scramble": True},
    }
    sampler = samplers[name](seed=seed, **{**settings.get(name, {}), **options})
    return OptunaSearch(sampler=sampler, points_to_evaluate=list(points) or None)
