"""Values of equal configurations with equal seeds, bit for bit: which of them two sets of runs share, and which are unequal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tuneoff.record.run_record import RunRecord

ABSENT = "absent"
ENDED_EARLY = "training ended by itself before it"  # of the epoch that would have been next: others may not have trained it
ValueKey = tuple[int, str, int, str]  # seed, digest of the configuration, epoch, metric
Values = Mapping[ValueKey, str]  # as text that only equal bits share


class ComparedValues(NamedTuple):
    """The values of the epochs that both sides trained."""

    configurations: frozenset[tuple[int, str]]  # seed, digest
    epochs: int
    values: int
    unequal: tuple[ValueKey, ...]


def values_of(runs: Mapping[int, RunRecord], planned_epochs: int) -> dict[ValueKey, str]:
    """Return each metric of the last attempt of each trial of these runs, by seed, and where a training ended by itself."""
    values: dict[ValueKey, str] = {}
    for seed, run in sorted(runs.items()):
        for trial in run.trials:
            if trial.ended_early(planned_epochs):
                values[seed, trial.digest, len(trial.attempts[-1].epochs) + 1, ENDED_EARLY] = "yes"
            for epoch in trial.attempts[-1].epochs if trial.attempts else ():
                for (
                    metric,
                    value,
                ) in epoch.metrics.items():  # the shortest text that reads back the same; -0.0 and 0.0 stay different
                    text = repr(value) if value is not None else (epoch.non_finite or {}).get(metric, "not finite")
                    values[seed, trial.digest, epoch.epoch, metric] = text
    return values


def compare_values(a: Values, b: Values) -> ComparedValues:
    """Return what two sides have in common, and where they differ, in the order of A."""
    epochs = {key[:3] for key in a} & {key[:3] for key in b}
    keys = [key for key in {**a, **b} if key[:3] in epochs]
    trained = epochs - {key[:3] for key in keys if key[3] == ENDED_EARLY}
    return ComparedValues(
        configurations=frozenset(epoch[:2] for epoch in epochs),
        epochs=len(trained),
        values=sum(key[:3] in trained for key in keys),
        unequal=tuple(key for key in keys if a.get(key, ABSENT) != b.get(key, ABSENT)),
    )
