"""What Optuna's samplers may be given, the same in every adapter that has them; imports no framework."""

from __future__ import annotations

from collections.abc import Mapping

from tuneoff.capabilities import Option

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
CMAES_DIMENSIONS = 2  # with fewer that have an order, CmaEsSampler draws at random, without a word
