"""What Optuna's samplers may be given, the same in every adapter that has them; imports no framework."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tuneoff.adapter import Option

if TYPE_CHECKING:
    from tuneoff.record.run_context import RunContext

_STARTUP = Option(type="integer", least=1)
_FLAG = Option(type="flag")

SAMPLER_OPTIONS: Mapping[str, Mapping[str, Option]] = {
    "tpe": {
        "n_startup_trials": _STARTUP,
        "n_ei_candidates": Option(type="integer", least=1),
        "multivariate": _FLAG,
        "constant_liar": _FLAG,
    },
    "gp": {"n_startup_trials": _STARTUP, "deterministic_objective": _FLAG},
    "cmaes": {"n_startup_trials": _STARTUP, "popsize": Option(type="integer", least=4), "with_margin": _FLAG},
    "sobol": {"scramble": _FLAG},
}
GP_POINTS = 10_000_000  # GPSampler makes an array of all points of an int, of 8 bytes each
CMAES_DIMENSIONS = 2  # with fewer that have an order, CmaEsSampler draws at random, without a word
STARTUP_TRIALS = {"tpe": 10, "default": 10, "gp": 10, "cmaes": 1}  # Optuna's defaults: so many trials are drawn at random


def flag_unused_model(context: RunContext, startup_trials: Mapping[str, int] = STARTUP_TRIALS) -> None:
    """Say so where the sampler's model is never used, because the budget ends before.

    `startup_trials`: by sampler, how many trials it draws at random unless its option `n_startup_trials` says otherwise.
    """
    experiment = context.spec.experiment
    if (name := experiment.sampler.name) in startup_trials:
        context.flag_unused_model(int(experiment.sampler.options.get("n_startup_trials", startup_trials[name])))
