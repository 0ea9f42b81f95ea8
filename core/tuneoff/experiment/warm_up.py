"""Warm-up runs: one short, discarded run per adapter, so that no counted run pays for cold caches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tuneoff.capabilities import Offer, Support
from tuneoff.experiment.expand import Cell, Entry
from tuneoff.experiment.skips import SkipCheck
from tuneoff.experiment.spec import RunSpec, Strategy

NO_PRUNER = Strategy(name="none")


def warm_ups(entries: Sequence[Entry], cells: Sequence[Cell], check: SkipCheck) -> list[tuple[RunSpec, Entry]]:
    """Return one warm-up per kind of entry that has a cell in `cells` (those that will run), in the file's order.

    A warm-up has one trial per worker and one epoch per trial of the adapter's first cell.
    """
    runs = []
    for entry in entries:
        first = next((cell for cell in cells if cell.entry is entry), None)
        if entry.replicate == 0 and first is not None:
            spec = shortened(first.spec, entry)
            if check.reason(spec, entry.adapter) is None:
                runs.append((spec, entry))
    return runs


def shortened(spec: RunSpec, entry: Entry) -> RunSpec:
    """Return the warm-up of a run: same adapter, workload, sampler and workers, and as little work as uses them all."""
    experiment = spec.experiment
    trials = min(experiment.budget.trials, experiment.workers.count)
    budget = replace(experiment.budget, trials=trials, epochs_per_trial=1, epochs_total=None)
    offer = entry.adapter.capabilities.pruners.get(NO_PRUNER.name, Offer(support=Support.NOT_BY_TUNEOFF))
    without_pruner = offer.support is Support.YES
    return replace(
        spec,
        warm_up=True,
        experiment=replace(
            experiment,
            budget=budget,
            pruner=NO_PRUNER if without_pruner else experiment.pruner,
            stops={} if without_pruner else experiment.stops,
            configurations=experiment.configurations[:trials],
        ),
    )
