"""One trial of each planted fault beside sound ones, and what each must end as in every framework."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contract.runs import experiment
from tuneoff.experiment.space import Float, SearchSpace
from tuneoff.experiment.spec import Budget, ExperimentSpec, Failures, Strategy, Timeouts, Workers
from tuneoff_workloads.faulty import example_of, fault_of


@dataclass(frozen=True)
class Expected:
    """How a faulty trial must end: state, a part of its cause, and who may be charged."""

    kind: str
    state: str
    cause: str
    charged: tuple[str, ...] = ("workload",)

    def is_of(self, configuration: Mapping[str, Any]) -> bool:
        return fault_of(configuration) == self.kind


KINDS = {
    expected.kind: expected
    for expected in (
        Expected("raise", "failed", "planted fault"),
        Expected("nan", "failed", "must be a finite number"),
        Expected("inf", "failed", "must be a finite number"),
        Expected("no_report", "failed", "must be a finite number"),
        Expected("hang", "timed_out", "timed out: silent"),
        # a framework that hides exit codes leaves only "its process died"
        Expected("exit_code", "failed", "", ("workload", "infrastructure")),
        Expected("sigkill", "failed", "", ("infrastructure",)),
        Expected("out_of_memory", "failed", "out of memory"),
    )
}
SOUND = 4


def faulty_experiment(memory_mb: float) -> ExperimentSpec:
    """Return an experiment with one configuration of each fault, and four sound ones between them."""
    faulty = [example_of(kind) for kind in KINDS]  # type: ignore[arg-type]
    sound = [example_of(None, skip=number) for number in range(SOUND)]
    configurations = []
    for index, configuration in enumerate(faulty):
        configurations.append(configuration)
        if index % 2 == 1:
            configurations.append(sound[index // 2])
    return _experiment(configurations, memory_mb)


def out_of_memory_experiment(memory_mb: float, retries: int) -> ExperimentSpec:
    """Return an experiment whose first trial exceeds its memory; two sound ones follow."""
    return _experiment([example_of("out_of_memory"), *(example_of(None, skip=number) for number in range(2))], memory_mb, retries)


def _experiment(configurations: Sequence[Mapping[str, float]], memory_mb: float, retries: int = 0) -> ExperimentSpec:
    return experiment(
        "faulty",
        {},
        search_space=SearchSpace({"learning_rate": Float(low=1e-6, high=1.0, log=True)}),
        sampler=Strategy(name="fixed"),
        configurations=tuple(configurations),
        budget=Budget(trials=len(configurations), epochs_per_trial=3),
        workers=Workers(count=2, memory_mb=memory_mb),
        timeouts=Timeouts(trial_seconds=60, silence_seconds=4),
        failures=Failures(retries=retries),
    )
