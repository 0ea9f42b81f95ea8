"""What Katib's algorithm services answer: the configurations of new trials, and the rules for stopping trials early.

Which code stands in for which service: `random` (Katib: hyperopt) and `grid` (Katib: Optuna's GridSampler) are written here;
`multivariate-tpe` is Optuna's TPESampler as in Katib, of the installed version; `medianstop` is written here. The distributions
and settings are Katib's. The random numbers are not: with `random_state` the n-th suggestion of an experiment is the same
whatever the batches were in which suggestions were asked for (for multivariate-tpe: given the same results before it), and after
a restart of the server. Katib's hyperopt service draws a new seed for every call, so its sequence depends on how many slots were
free. Without `random_state` the seed comes from the experiment's uid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from katib_emulation.suggestions.multivariate_tpe import MultivariateTpe
from katib_emulation.suggestions.results import MedianStop, Told, objective_value, settings_of, told_trials
from katib_emulation.suggestions.spaces import Grid, RandomSearch, parameters_of

__all__ = ["Algorithm", "MedianStop", "Told", "algorithm_for", "objective_value", "told_trials", "why_refused"]

SETTINGS = {
    # what a service knows, with the least value
    "random": {"random_state": 0},
    "grid": {"random_state": 0},
    "multivariate-tpe": {"n_startup_trials": 0, "n_ei_candidates": 0, "random_state": 0},
    "medianstop": {"min_trials_required": 1, "start_step": 1},
}


class Algorithm(Protocol):
    """Makes configurations."""

    def suggest(self, index: int, told: Sequence[Told]) -> dict[str, str]:
        """Return the configuration with number `index` (from 0), with every value as text."""


def algorithm_for(experiment: Mapping[str, Any], past: Sequence[Mapping[str, str]] = ()) -> Algorithm:
    """Return the algorithm of an Experiment whose settings are valid.

    Args:
        experiment: the Experiment.
        past: each configuration that was suggested before, in another life of the server.

    Raises:
        ValueError: the algorithm cannot work on this space.
    """
    spec = experiment["spec"]
    settings = settings_of(spec["algorithm"])
    seed = settings.get("random_state") or experiment["metadata"]["uid"]
    parameters = parameters_of(experiment)
    name = spec["algorithm"]["algorithmName"]
    if name == "multivariate-tpe":
        return MultivariateTpe(parameters, seed, settings, spec["objective"]["type"], past)
    return Grid(parameters, seed) if name == "grid" else RandomSearch(parameters, seed)


def why_refused(experiment: Mapping[str, Any]) -> str | None:
    """Return why the services refuse the settings of an Experiment, or its space; None if they take them."""
    spec = experiment["spec"]
    for part, what in (("algorithm", "ValidateAlgorithmSettings"), ("earlyStopping", "ValidateEarlyStoppingSettings")):
        name = spec.get(part, {}).get("algorithmName")
        for setting, value in settings_of(spec.get(part, {})).items():
            least = SETTINGS[name].get(setting)
            if least is None:
                return f"{what} Error: unknown setting {setting} for algorithm {name}"
            if not value.isdecimal() or int(value) < least:
                return f"{what} Error: {setting} must be a whole number of at least {least}, but is {value}"
    if spec["algorithm"]["algorithmName"] != "grid":
        return None
    try:
        size = Grid(parameters_of(experiment), "").size
    except ValueError as error:
        return f"ValidateAlgorithmSettings Error: failed to validate parameters: {error}"
    most = spec.get("maxTrialCount", 0)
    why = f"Max Trial Count: {most} > all possible search combinations: {size}"
    return f"ValidateAlgorithmSettings Error: {why}" if most > size else None
