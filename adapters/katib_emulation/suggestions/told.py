"""The results that a service is told: of trials that succeeded or were stopped early, by the objective's strategy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from katib_emulation.conditions import conditions_of, has_condition


@dataclass(frozen=True, slots=True)
class Told:
    """One finished trial."""

    name: str
    configuration: Mapping[str, str]
    value: float


def told_trials(trials: Iterable[Mapping[str, Any]]) -> list[Told]:
    """Return what a service is told of these trials.

    Trials whose metrics are unavailable are left out; failed ones are sent, and ignored by every service.

    Raises:
        ValueError: a value is no number (the collector makes "" of `nan`): from then on the service answers no call, as in Katib.
    """
    told = []
    for trial in trials:
        conditions = conditions_of(trial)
        if has_condition(trial, "MetricsUnavailable") or not conditions:
            continue
        if conditions[-1].get("type") not in ("Succeeded", "EarlyStopped"):
            continue
        value = objective_value(trial)
        if value is None:
            continue
        assignments = {given["name"]: given["value"] for given in trial["spec"].get("parameterAssignments", ())}
        told.append(Told(trial["metadata"]["name"], assignments, float(value)))
    return told


def objective_value(trial: Mapping[str, Any]) -> str | None:
    """Return the objective's value by its strategy as text; the latest where there is no minimum or maximum; None without one."""
    objective = trial["spec"]["objective"]
    name = objective["objectiveMetricName"]
    strategy = next((s["value"] for s in objective.get("metricStrategies", ()) if s["name"] == name), None)
    observation = (trial.get("status") or {}).get("observation") or {}
    metric = next((m for m in observation.get("metrics", ()) if m["name"] == name), None)
    if metric is None or strategy is None:
        return None
    value: str = metric.get(strategy, "")  # empty text is left out of objects
    if value == "unavailable":
        value = metric.get("latest", "")
    return None if value == "unavailable" else value
