"""A metric as an experiment means it: what the catalogue leaves to the objective, which has a name and a direction."""

from __future__ import annotations

import math

from tuneoff.experiment.metric import Scale
from tuneoff.experiment.metric_catalogue import metric as known
from tuneoff.measure.incumbent import test_counterpart
from tuneoff.workload import Mode

_LOSSES = ("loss", "error", "rmse", "mae", "mse", "perplexity")
_SCORES = ("accuracy", "f1", "auc", "precision", "recall")  # of 0 to 1


def better(metric: str, objective_metric: str, mode: Mode) -> Mode:
    """Return which way of a metric is better; quality follows the objective, and another test score its own name."""
    direction = known(metric).better
    if direction != "objective":
        return "max" if direction == "higher" else "min"
    if is_of_objective(metric, objective_metric):
        return mode
    return "min" if any(loss in metric.removeprefix("test.").lower() for loss in _LOSSES) else "max"


def scale(metric: str) -> Scale:
    """Return how two values are compared: scores, counts and shares by their difference, what has a zero by the log ratio."""
    return known(metric).scale


def bounds(metric: str, objective_metric: str) -> tuple[float, float]:
    """Return what a metric cannot be below and above."""
    of = known(metric)
    if of.is_signed:
        return -math.inf, math.inf
    if any(word in (metric if of.unit else _score(metric, objective_metric)) for word in _SCORES):
        return 0.0, 1.0
    if is_share(metric):
        return 0.0, 100.0
    return (0.0, math.inf) if of.unit else (-math.inf, math.inf)


def is_share(metric: str) -> bool:
    """Whether it is in percent."""
    return known(metric).unit == "%"


def is_of_objective(metric: str, objective_metric: str) -> bool:
    """Whether it is the selected model's quality, so that the quality margin is of it."""
    if metric.startswith("test."):
        return test_counterpart(objective_metric, [metric.removeprefix("test.")]) is not None
    return known(metric).better == "objective"


def default_unit(metric: str, objective_metric: str) -> str:
    """Return the unit of a metric that no record has."""
    return known(metric).unit or _score(metric, objective_metric)


def _score(metric: str, objective_metric: str) -> str:
    """Return the name of a score, which is its unit."""
    if metric.startswith("test."):
        return metric.removeprefix("test.")
    of_test = f"test_{objective_metric.removeprefix('validation_').removeprefix('val_')}"
    return of_test if metric == "quality.test" else objective_metric
