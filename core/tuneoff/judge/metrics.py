"""The metrics that tables show, and what a metric means in an experiment, as far as its objective decides that."""

from __future__ import annotations

import math
from pathlib import Path

from tuneoff.base.files import read_json
from tuneoff.experiment.accounting.declared import Prices
from tuneoff.experiment.metric_catalogue import FURTHER
from tuneoff.experiment.metric_catalogue import metric as definition
from tuneoff.judge.results import Run, value
from tuneoff.measure.cost import billed_ns
from tuneoff.measure.incumbent import test_counterpart
from tuneoff.measure.spans import PARTS
from tuneoff.workload import Mode

COLUMNS = (  # of the table of figures, the most important first
    *("quality.test", "time.jct_without_test", "overhead.per_trial"),
    *("energy.per_completed_trial_without_test", "cost.job_without_test"),
    *("quality.validation", "time.jct", "energy.per_completed_trial", "cost.job"),
    *("slots.idle_share", "energy.trial", "carbon.job_without_test", "carbon.job", "energy.idle_share"),
    *(f"waste.default.{name}" for name in ("time", "energy", "cost")),
    *("energy.cpu_seconds", "energy.reserved_core_seconds"),
    *(f"time.{part}" for part in PARTS if part != "metric_collection"),
    *("cost.per_completed_trial_without_test", "cost.per_completed_trial"),
)
QUALITY_AND_TIME = tuple(name for name in COLUMNS if name.startswith(("quality.", "time.", "overhead.", "slots.")))
ENERGY_AND_COST = tuple(name for name in COLUMNS if name not in QUALITY_AND_TIME)
ADDED = tuple(
    f"overhead.{name}" for name in ("per_trial", "process_start", "between", "dispatch", "report", "exit", "vacant")
)  # to a trial, and where from
INSIDE = ("items.", "phase.")  # families of what a training tells of itself, where it does
FOOTPRINT = ("time.preparation", "memory.tree_peak_rss", "suite.cpu_share")
METRICS = tuple(dict.fromkeys((*COLUMNS, *ADDED, *FOOTPRINT, *FURTHER)))  # of the figures in JSON
LARGEST = 50_000_000  # bytes
BILLED = dict.fromkeys(("cost.job", "cost.per_completed_trial"), "time.jct") | {
    "cost.job_without_test": "time.jct_without_test",
    "cost.per_completed_trial_without_test": "time.jct_without_test",
}  # by whole units of this time
_LOSSES = ("loss", "error", "rmse", "mae", "mse", "perplexity")
_SCORES = ("accuracy", "f1", "auc", "precision", "recall")  # of 0 to 1


def grid_step(test_result: Path | None) -> float:
    """Return 1 / the number of cases that a test counted, 0 where nothing tells."""
    try:
        content = read_json(test_result, LARGEST) if test_result is not None else {}
        size = sum(int(count) for row in content["details"]["confusion_matrix"] for count in row)
    except (OSError, ValueError, TypeError, LookupError):
        return 0.0
    return 1 / size if size > 0 else 0.0


def billed_share(run: Run, metric: str, prices: Prices | None) -> float:
    """Return the last unit of a run's billed time as a part of it: all at the minimum, 0 where there is no cost to compare."""
    jct = run.number(BILLED.get(metric, ""))
    if jct is None or prices is None or prices.premises == "own" or value(run, metric).value is None:
        return 0.0
    billed, least = billed_ns(round(jct * 1e6), prices), billed_ns(0, prices)
    unit = least if billed == least else round(prices.billing_granularity_seconds * 1e9)
    return unit / billed if billed > 0 else 0.0


def better(metric: str, objective_metric: str, mode: Mode) -> Mode:
    """Return which way of a metric is better; quality follows the objective, and another test score its own name."""
    direction = definition(metric).better
    if direction != "objective":
        return "max" if direction == "higher" else "min"
    if is_of_objective(metric, objective_metric):
        return mode
    return "min" if any(loss in metric.removeprefix("test.").lower() for loss in _LOSSES) else "max"


def bounds(metric: str, objective_metric: str) -> tuple[float, float]:
    """Return what a metric cannot be below and above."""
    of = definition(metric)
    if of.is_signed:
        return -math.inf, math.inf
    name = (metric if of.unit else _score(metric, objective_metric)).lower()
    if any(word in name for word in _SCORES):
        return 0.0, 1.0
    if of.unit == "%":
        return 0.0, 100.0
    return (0.0, math.inf) if of.unit or any(word in name for word in _LOSSES) else (-math.inf, math.inf)


def is_of_objective(metric: str, objective_metric: str) -> bool:
    """Whether it is the selected model's quality, so that the quality margin is of it."""
    if metric.startswith("test."):
        return test_counterpart(objective_metric, [metric.removeprefix("test.")]) is not None
    return definition(metric).better == "objective"


def default_unit(metric: str, objective_metric: str) -> str:
    """Return the unit of a metric that no record has."""
    return definition(metric).unit or _score(metric, objective_metric)


def _score(metric: str, objective_metric: str) -> str:
    """Return the name of a score, which is its unit."""
    if metric.startswith("test."):
        return metric.removeprefix("test.")
    of_test = f"test_{objective_metric.removeprefix('validation_').removeprefix('val_')}"
    return of_test if metric == "quality.test" else objective_metric
