"""How long the rest of a matrix will take, from the warm-ups and runs that ended before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from tuneoff.base.identity import canonical_json
from tuneoff.experiment.plan import PlannedRun
from tuneoff.record.run_record import RunRecord
from tuneoff.run.listener import LiveRun


class Estimate:
    """Tells a run's likely seconds: the mean of its own cell, else of its framework, else its warm-up's, else of all runs.

    A warm-up has fewer trials: its trial step counts as often as they go into the trials of a run.
    """

    def __init__(self, runs: Sequence[PlannedRun]) -> None:
        trials = {run.label: run.spec.experiment.budget.trials for run in runs if not run.spec.warm_up}
        self._keys: dict[str, tuple[tuple[str, ...], ...]] = {}
        self._times: dict[str, float] = {}  # by a warm-up's id
        for run in runs:
            if run.spec.warm_up:
                self._keys[run.run_id] = (("warm-up", run.label),)
                self._times[run.run_id] = trials.get(run.label, 1) / run.spec.experiment.budget.trials
            else:
                self._keys[run.run_id] = (_cell(run), ("framework", run.label), ("warm-up", run.label), ("all",))

    def taken(self, record: RunRecord) -> float | None:
        """Return how long an execution took, from deploy to the end of its last step; a warm-up: as a run would have."""
        ends = [step.ended_ns for step in record.steps if step.ended_ns is not None]
        if not ends:
            return None
        trial_ns = sum(step.ended_ns - step.started_ns for step in record.steps if step.step == "trial" and step.ended_ns)
        return (max(ends) + (self._times.get(record.run_id, 1.0) - 1.0) * trial_ns) / 1e9

    def seconds(self, to_come: Iterable[str], took: Mapping[str, float], live: LiveRun | None) -> float | None:
        """Return the seconds left; None until they can be told.

        `to_come`: ids of the runs after the current one. `took`: seconds by run id, as `taken` has them. `live`: the current one.
        """
        sums: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
        for run_id, seconds in took.items():
            is_warm_up = run_id in self._times
            for key in self._keys.get(run_id, ()):
                if is_warm_up or key[0] != "warm-up":
                    sums[key][0] += seconds
                    sums[key][1] += 1

        def likely(run_id: str) -> float | None:
            found = next((sums[key] for key in self._keys.get(run_id, ()) if key in sums), None)
            return found[0] / found[1] if found is not None else None

        parts = [likely(run_id) for run_id in to_come]
        if live is not None:
            whole = likely(live.run_id) if live.seconds_left is None else None
            parts.append(live.seconds_left if whole is None else max(0.0, whole - live.seconds))
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None


def _cell(run: PlannedRun) -> tuple[str, ...]:
    experiment = run.spec.experiment
    parts = (experiment.sampler.name, experiment.pruner.name, dict(experiment.variant))
    return ("cell", run.label, canonical_json(list(parts)))
