"""How long the rest of a matrix will take, from the runs that ended before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from tuneoff.base.identity import canonical_json
from tuneoff.experiment.plan import PlannedRun
from tuneoff.run.listener import LiveRun


class Estimate:
    """Tells a run's likely seconds: the mean of its own cell, else of its adapter, else of all runs.

    Warm-ups are left out: they are shorter.
    """

    def __init__(self, runs: Sequence[PlannedRun]) -> None:
        self._keys = {run.run_id: (_cell(run), ("adapter", run.label), ("all",)) for run in runs if not run.spec.warm_up}

    def seconds(self, to_come: Iterable[str], took: Mapping[str, float], live: LiveRun | None) -> float | None:
        """Return the seconds left; None until they can be told.

        `to_come`: ids of the runs after the current one. `took`: seconds by run id of those that ran. `live`: the current one.
        """
        sums: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
        for run_id, seconds in took.items():
            for key in self._keys.get(run_id, ()):
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
