"""Katib's own best trial, checked against what the trials' events say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

from tuneoff.adapter import Best
from tuneoff.experiment.spec import Objective
from tuneoff_adapters.kubernetes.resources import Object

NOT_COMPLETED = "optimum_not_completed"


class TrialReport(Protocol):
    """What a trial's own events say of it."""

    trial_id: str
    configuration: Mapping[str, Any]
    value: float | None  # the best finite one over its epochs

    @property
    def is_complete(self) -> bool:
        """Whether the records call it so."""


def optimum(
    experiment: Object | None, reports: Mapping[str, TrialReport], objective: Objective, metric: str
) -> tuple[Best, str | None] | None:
    """Return Katib's optimal trial, or the best completed one where Katib names none or one that did not complete; and why.

    Katib counts early stopped trials too, and a trial's best epoch (`metricStrategies` min or max), as core does.
    `reports`: by Katib's name.
    """
    optimal = ((experiment or {}).get("status") or {}).get("currentOptimalTrial") or {}
    name = optimal.get("bestTrialName")
    named = reports.get(name or "")
    if named is not None and named.is_complete:
        metrics = (optimal.get("observation") or {}).get("metrics") or []  # in any order
        text = next((item.get(objective.mode) for item in metrics if item.get("name") == metric), None)
        return Best(trial_id=named.trial_id, configuration=named.configuration, value=_number(text)), None
    completed: TrialReport | None = None
    for report in reports.values():
        best_value = completed.value if completed is not None else None
        if report.is_complete and report.value is not None and objective.is_better(report.value, best_value):
            completed = report
    if completed is None:
        return None
    problem = f"Katib's optimal trial {name!r} did not complete" if name else "Katib names no optimal trial"
    note = f"{problem}; the best trial that completed is {completed.trial_id!r}"
    return Best(trial_id=completed.trial_id, configuration=completed.configuration, value=None), note


def _number(text: object) -> float | None:
    """Katib's values are strings, and `unavailable` where there is none."""
    try:
        number = float(str(text))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
