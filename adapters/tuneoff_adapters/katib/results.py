"""Katib's own best trial, checked against what the trials' events say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tuneoff.adapter import Best
from tuneoff.experiment.spec import Objective
from tuneoff_adapters.kubernetes.resources import Object

NOT_COMPLETED = "optimum_not_completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialReport:
    """What a trial's own events say of it. `value`: the best finite one over its epochs."""

    trial_id: str
    framework_id: str
    configuration: Mapping[str, Any]
    is_complete: bool
    value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimum:
    """The best trial to report; `note` says why it is not the one that Katib names (None: it is)."""

    best: Best
    note: str | None = None


def optimum(experiment: Object | None, outcomes: Iterable[TrialReport], objective: Objective, metric: str) -> Optimum | None:
    """Return Katib's optimal trial, or the best completed one where Katib names none or one that did not complete.

    Katib counts early stopped trials too, and a trial's best epoch (`metricStrategies` min or max), as core does.
    """
    by_name = {outcome.framework_id: outcome for outcome in outcomes}
    name, value = _named(experiment, objective, metric)
    named = by_name.get(name or "")
    if named is not None and named.is_complete:
        return Optimum(best=Best(trial_id=named.trial_id, configuration=named.configuration, value=value))
    completed: TrialReport | None = None
    for report in by_name.values():
        best_value = completed.value if completed is not None else None
        if report.is_complete and report.value is not None and objective.is_better(report.value, best_value):
            completed = report
    if completed is None:
        return None
    problem = f"Katib's optimal trial {name!r} did not complete" if name else "Katib names no optimal trial"
    note = f"{problem}; the best trial that completed is {completed.trial_id!r}"
    return Optimum(best=Best(trial_id=completed.trial_id, configuration=completed.configuration, value=None), note=note)


def _named(experiment: Object | None, objective: Objective, metric: str) -> tuple[str | None, float | None]:
    """Return the name of Katib's optimal trial and its value; (None, None) before there is one."""
    status = (experiment or {}).get("status") or {}
    optimal = status.get("currentOptimalTrial") or {}
    name = optimal.get("bestTrialName")
    if not name:
        return None, None
    metrics = (optimal.get("observation") or {}).get("metrics") or []
    for item in metrics:  # in any order
        if item.get("name") == metric:
            return str(name), _number(item.get(objective.mode))
    return str(name), None


def _number(text: object) -> float | None:
    """Katib's values are strings, and `unavailable` where there is none."""
    try:
        number = float(str(text))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
