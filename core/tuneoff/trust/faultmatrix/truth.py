"""What is true of the configurations, computed without any framework: the value of each, and which one is best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tuneoff.experiment.function_workload import workload_at
from tuneoff.experiment.spec import ExperimentSpec, Objective
from tuneoff.workload import TrialSeeds

SEEDS = TrialSeeds(split=0, trial=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The values after each epoch by configuration, and which configuration meets the fault; the last value is its result."""

    values: tuple[tuple[float, ...], ...]
    objective: Objective
    faulty: int
    is_sound: bool  # the faulty configuration has a right result too

    def result(self, index: int) -> float | None:
        """Return the right result of a configuration, or None where it has none."""
        if index == self.faulty and not self.is_sound:
            return None
        return self.values[index][-1]


def clean_values(experiment: ExperimentSpec, options: Mapping[str, Any]) -> tuple[tuple[float, ...], ...]:
    """Return the metric after each epoch of each listed configuration, trained here with these options of the workload."""
    found = []
    for configuration in experiment.configurations:
        workload = workload_at(experiment.workload.target)(dict(options))
        workload.load(configuration, SEEDS)
        values = []
        for epoch in range(1, experiment.budget.epochs_per_trial + 1):
            workload.train_epoch(epoch)
            values.append(float(workload.validate()[experiment.objective.metric]))
        found.append(tuple(values))
    return tuple(found)


def best_of(values: Mapping[int, float], objective: Objective) -> int | None:
    """Return the index with the best value; the first of equal ones."""
    best: int | None = None
    for index, value in values.items():
        if objective.is_better(value, than=None if best is None else values[best]):
            best = index
    return best
