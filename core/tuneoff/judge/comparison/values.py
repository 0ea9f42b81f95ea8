"""Values of equal configurations with equal seeds, bit for bit: which of them two sets of runs share, and which are unequal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tuneoff.record.run_record import EpochRecord, RunRecord

ABSENT = "absent"
ENDED_EARLY = "training ended by itself before it"  # of the epoch that would have been next: others may not have trained it
Place = tuple[int, str, int, str]  # seed, digest of the configuration, epoch, metric
Values = Mapping[Place, str]  # as text that only equal bits share


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedValues:
    """The values of the epochs that both sides trained."""

    configurations: frozenset[tuple[int, str]]  # seed, digest
    epochs: int
    values: int
    unequal: tuple[Place, ...]


def values_of(runs: Mapping[int, RunRecord], planned_epochs: int) -> dict[Place, str]:
    """Return each metric of the last attempt of each trial of these runs, by seed, and where a training ended by itself."""
    return {place: text for seed, run in sorted(runs.items()) for place, text in _of_run(run, seed, planned_epochs)}


def compare_values(a: Values, b: Values) -> ComparedValues:
    """Return what two sides have in common, and where they differ, in the order of A."""
    epochs = {place[:3] for place in a} & {place[:3] for place in b}
    places = [place for place in {**a, **b} if place[:3] in epochs]
    trained = epochs - {place[:3] for place in places if place[3] == ENDED_EARLY}
    return ComparedValues(
        configurations=frozenset(epoch[:2] for epoch in epochs),
        epochs=len(trained),
        values=sum(place[:3] in trained for place in places),
        unequal=tuple(place for place in places if a.get(place, ABSENT) != b.get(place, ABSENT)),
    )


def _of_run(run: RunRecord, seed: int, planned_epochs: int) -> Iterator[tuple[Place, str]]:
    for trial in run.trials:
        if trial.ended_early(planned_epochs):
            yield (seed, trial.digest, len(trial.attempts[-1].epochs) + 1, ENDED_EARLY), "yes"
        for epoch in trial.attempts[-1].epochs if trial.attempts else ():
            for metric in epoch.metrics:
                yield (seed, trial.digest, epoch.epoch, metric), _text(epoch, metric)


def _text(epoch: EpochRecord, metric: str) -> str:
    """Return the shortest text that reads back as the same number; -0.0 and 0.0 stay different."""
    value = epoch.metrics[metric]
    return repr(value) if value is not None else (epoch.non_finite or {}).get(metric, "not finite")
