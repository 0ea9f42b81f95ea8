"""Normalised regret: 0 is the best known value of a task, 1 what random search selects with the full budget, on validation."""

from __future__ import annotations

import math

from tuneoff.experiment.analysis_part import AnchorsPart
from tuneoff.judge.answers.analysis_plan import Frozen
from tuneoff.judge.answers.run_values import value
from tuneoff.judge.runs import Group

VALIDATION = "quality.validation"


def anchors_of(cell: Group, plan: Frozen) -> AnchorsPart | None:
    """Return the frozen anchors of a cell's task; None where there are none, or they are of another direction.

    With the best known value below random search (where great is better) the better adapter would have the greater regret.
    """
    found, objective = plan.anchors.get(cell.scope.task), cell.spec.experiment.objective
    is_usable = found is not None and (found.best_known > found.random_search) == (objective.mode == "max")
    return found if is_usable else None


def normalised(validation: float, anchors: AnchorsPart) -> float:
    """Return the regret of a validation value, for either direction of the metric: better than the best known is below 0."""
    return (anchors.best_known - validation) / (anchors.best_known - anchors.random_search)


def regrets(cell: Group, anchors: AnchorsPart) -> list[float]:
    """Return the regret of each run that ended; +inf for one that failed."""
    found = []
    for run in cell.runs:
        selected = value(run, VALIDATION).value
        if run.has_failed:
            found.append(math.inf)
        elif selected is not None:
            found.append(normalised(selected, anchors))
    return found


def bounded(regret: list[float]) -> list[float]:
    """Return regrets with a failure as the worst anchor, 1, or as the worst of the same runs where that is worse.

    So a failure is never better than a success, and another adapter changes nothing.
    """
    worst = max([1.0, *(one for one in regret if math.isfinite(one))])
    return [one if math.isfinite(one) else worst for one in regret]
