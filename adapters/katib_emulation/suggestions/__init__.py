"""What Katib's algorithm services answer: the configurations of new trials, and the rules for stopping trials early.

Which code stands in for which service: `random` (Katib: hyperopt) and `grid` (Katib: Optuna's GridSampler) are written here;
`multivariate-tpe` is Optuna's TPESampler as in Katib, of the installed version; `medianstop` is written here. The distributions
and settings are Katib's. The random numbers are not: with `random_state` the n-th suggestion of an experiment is the same
whatever the batches were in which suggestions were asked for (for multivariate-tpe: given the same results before it), and after
a restart of the server. Katib's hyperopt service draws a new seed for every call, so its sequence depends on how many slots were
free. Without `random_state` the seed comes from the experiment's uid.
"""

from __future__ import annotations

from katib_emulation.suggestions.median_stop import MedianStop
from katib_emulation.suggestions.service import Algorithm, algorithm_for
from katib_emulation.suggestions.settings import validate_algorithm, validate_early_stopping
from katib_emulation.suggestions.told import Told, objective_value, told_trials

__all__ = [
    "Algorithm",
    "MedianStop",
    "Told",
    "algorithm_for",
    "objective_value",
    "told_trials",
    "validate_algorithm",
    "validate_early_stopping",
]
