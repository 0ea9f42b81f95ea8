"""The step between two values that a metric can have: one case of the test split, one unit of billed time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tuneoff.base.files import read_json
from tuneoff.experiment.accounting.declared import Prices
from tuneoff.judge.answers.run_values import value
from tuneoff.judge.results import Results
from tuneoff.judge.runs import Group, Run
from tuneoff.measure.cost import billed_ns
from tuneoff.record.layout import TEST_RESULT

LARGEST = 50_000_000  # bytes
BILLED = ("cost.job", "cost.slots", "cost.head_node", "cost.database", "cost.per_completed_trial")  # by whole units of time


def grid_step(results: Results, cells: Sequence[Group]) -> float:
    """Return 1 / the number of cases that the test of a scope counted, 0 where the objective is no accuracy or nothing tells."""
    if "accuracy" not in cells[0].spec.experiment.objective.metric:
        return 0.0
    record = next((run.record for cell in cells for run in cell.runs if run.is_done), None)
    if record is None:
        return 0.0
    try:
        told = read_json(results.folder / results.run_folder(record) / TEST_RESULT, LARGEST)
        size = sum(int(count) for row in told["details"]["confusion_matrix"] for count in row)
    except (OSError, ValueError, TypeError, LookupError):
        return 0.0
    return 1 / size if size > 0 else 0.0


def billing_step(cell: Group, metric: str, prices: Prices | None) -> float:
    """Return the greatest step in USD between two costs that runs of a cell can have; 0 where no time is rounded up."""
    costs = ((run, run.record.metrics.get(metric)) for run in cell.runs if run.record is not None)
    steps = (cost.value * _share(run, metric, prices) for run, cost in costs if cost is not None and cost.value is not None)
    return max(steps, default=0.0)


def log_billing_step(cells: Sequence[Group], metric: str, prices: Prices | None) -> float:
    """Return twice what half a step less is on the logarithm of the shortest run's cost, where it is the greatest."""
    share = max((_share(run, metric, prices) for cell in cells for run in cell.runs), default=0.0)
    return -2 * math.log1p(-share / 2)


def _share(run: Run, metric: str, prices: Prices | None) -> float:
    """Return the last unit of a run's billed time as a part of it: all at the minimum, 0 where there is no cost to compare."""
    if value(run, metric).value is None:
        return 0.0
    jct = run.record.metrics.get("time.jct") if run.record is not None else None
    if metric not in BILLED or prices is None or prices.premises == "own" or jct is None or jct.value is None:
        return 0.0
    used = round(jct.value * 1e6)
    billed = billed_ns(used, prices)
    least = billed_ns(0, prices)
    unit = least if billed == least else round(prices.billing_granularity_seconds * 1e9)
    return unit / billed if billed > 0 else 0.0
