"""Does SMAC3, without tuneoff, survive one trial that raises? `python -m benchmarks.smac_exception [CRASH_COST ...]`"""

from __future__ import annotations

import math
import sys
import tempfile

import ConfigSpace
from smac import HyperparameterOptimizationFacade, Scenario

TRIALS, RAISES = 25, 3


def outcome(crash_cost: float, folder: str) -> str:
    """Return how `optimize` ends whose third trial raises, and after how many trials."""
    begun = 0

    def train(configuration: ConfigSpace.Configuration, seed: int = 0) -> float:
        nonlocal begun
        begun += 1
        if begun == RAISES:
            raise RuntimeError("one trial that raises")
        return float((configuration["x"] - 0.3) ** 2)

    space = ConfigSpace.ConfigurationSpace(space={"x": (0.0, 1.0)})
    scenario = Scenario(space, n_trials=TRIALS, deterministic=True, seed=1, crash_cost=crash_cost, output_directory=folder)
    try:
        HyperparameterOptimizationFacade(scenario, train, overwrite=True, logging_level=False).optimize()
    except ValueError as error:
        return f"ValueError after {begun} trials: {error}"
    return f"{begun} trials"


if __name__ == "__main__":
    for cost in map(float, sys.argv[1:] or (math.inf, 1.0)):
        with tempfile.TemporaryDirectory() as temporary:
            print(f"crash_cost {cost}: {outcome(cost, temporary)}")
