"""Which way of a metric is better, and on which scale two of its values are compared."""

from __future__ import annotations

import math
from typing import Literal

from tuneoff.answers.model import Scale
from tuneoff.metrics.incumbent import test_counterpart

Better = Literal["min", "max"]

_OF_OBJECTIVE = ("quality.validation", "quality.validation_of_core_best", "quality.test")
_GREAT = (
    "slots.utilization",
    "trials.per_second",
    "trials.completed",
    "trials.of_budget",
    "epochs.of_budget",
    "slots.busy_share",
)
_GREAT_PREFIXES = ("pruning.saved_",)
_LOSSES = ("loss", "error", "rmse", "mae", "mse", "perplexity")
_SHARES = ("_share", "utilization", ".of_budget", ".optimism")
_DIFFERENCES = (
    "quality.",
    "test.",
    "trials.",
    "epochs.",
    "failures.",
    "goal.trials",
    "goal.epochs",
    "stop.epochs",
    "stop.ignored",
)
_COUNTS = ("trials.", "epochs.", "failures.", "goal.", "stop.")
_RATIOS = ("trials.per_second",)
_EXACT_UNITS = {
    "trials.per_second": "1/s",
    "carbon.trials_left_out": "count",
    "energy.trial": "kWh",
    "energy.trial_power": "W",
    "energy.watts_per_core": "W",
    "energy.joules_per_cpu_second": "J/s",
    "nodes.peak_memory": "MB",
    "pruning.saved_energy": "kWh",
    "pruning.saved_time": "ms",
    "slots.greatest_overlap": "count",
    "slots.overlapped": "s",
    "slots.trial_gap_median": "ms",
    "stop.busy_after_decision": "ms",
}
_ENDINGS = (  # before the beginnings
    ("_intensity", "g/kWh"),
    ("_intensity_weighted", "g/kWh"),
    ("_seconds", "s"),
    (".core_time", "core-ms"),
    ("]", "s"),
)
_OF_WASTE = {"energy": "kWh", "carbon": "g", "cost": "USD"}
_BEGINNINGS = (
    ("energy.", "J"),
    ("carbon.", "g"),
    ("cost.", "USD"),
    ("memory.", "MB"),
    ("goal.seconds", "s"),
    ("slots.", "slot-s"),
    ("time.", "ms"),
    ("overhead.", "ms"),
    ("trial_execution.", "ms"),
    ("stop_latency.", "ms"),
    ("stage.", "ms"),
    ("waste.", "ms"),
)


def better(metric: str, objective_metric: str, mode: Better) -> Better:
    """Return which way of a metric is better; quality follows the objective, what is used up is better small."""
    if metric in _OF_OBJECTIVE:
        return mode
    if metric.startswith("test."):
        name = metric.removeprefix("test.")
        if test_counterpart(objective_metric, [name]) is not None:
            return mode
        return "min" if any(loss in name.lower() for loss in _LOSSES) else "max"
    return "max" if metric in _GREAT or metric.startswith(_GREAT_PREFIXES) else "min"


def scale(metric: str) -> Scale:
    """Return how two values are compared: scores, counts and shares by their difference, what has a zero by the log ratio."""
    if metric in _RATIOS:
        return "ratio"
    return "difference" if metric.startswith(_DIFFERENCES) or metric.endswith(_SHARES) else "ratio"


def bounds(metric: str, objective_metric: str) -> tuple[float, float]:
    """Return what a metric cannot be below and above."""
    name = objective_metric if metric.startswith("quality.") else metric
    if metric.endswith(".optimism") or metric == "energy.residual_share":
        return -math.inf, math.inf
    if any(word in name for word in ("accuracy", "f1", "auc", "precision", "recall")):
        return 0.0, 1.0
    if is_share(metric):
        return 0.0, 100.0
    return (0.0, math.inf) if scale(metric) == "ratio" or metric.startswith(_COUNTS) else (-math.inf, math.inf)


def is_share(metric: str) -> bool:
    """Whether it is in percent."""
    return metric.endswith(_SHARES) and not metric.endswith(".optimism")


def is_of_objective(metric: str, objective_metric: str) -> bool:
    """Whether it is the selected model's quality, so that the quality margin is of it."""
    if metric.startswith("test."):
        return test_counterpart(objective_metric, [metric.removeprefix("test.")]) is not None
    return metric in _OF_OBJECTIVE


def default_unit(metric: str, objective_metric: str) -> str:
    """Return the unit of a metric that no record has."""
    if metric == "quality.test":
        return f"test_{objective_metric.removeprefix('validation_').removeprefix('val_')}"
    if metric.startswith("quality."):
        return objective_metric
    if metric.startswith("test."):
        return metric.removeprefix("test.")
    if metric in _EXACT_UNITS:
        return _EXACT_UNITS[metric]
    if is_share(metric):
        return "%"
    if metric.startswith("waste."):
        family = metric.rpartition(".")[2]
        if family in _OF_WASTE:
            return _OF_WASTE[family]
    for ending, unit in _ENDINGS:
        if metric.endswith(ending):
            return unit
    return next((unit for beginning, unit in _BEGINNINGS if metric.startswith(beginning)), "count")
