"""What the services make of the trials that have ended: the results that they are told, and the rule of `medianstop`.

Its name says median; what Katib computes is a mean of means. Over the first `start_step` reports of each succeeded trial the mean
is taken, and the mean of those is the rule's value, once `min_trials_required` trials have succeeded. The rule is fixed when a
trial is suggested. Whoever runs the trial compares its best report so far with the rule exactly once, at its `start_step`-th
report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from katib_emulation.objects import conditions_of, has_condition


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


Reports = Callable[[str], Sequence[str]]
"""Gives the objective's values of a trial, as text, in the order of time."""


def settings_of(part: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of `spec.algorithm` or `spec.earlyStopping` by name; the last one counts."""
    return {given.get("name", ""): given.get("value", "") for given in part.get("algorithmSettings", ())}


class MedianStop:
    """Keeps the means of the trials that succeeded."""

    def __init__(self, experiment: Mapping[str, Any], reports: Reports) -> None:
        settings = settings_of(experiment["spec"]["earlyStopping"])
        objective = experiment["spec"]["objective"]
        self._least_trials = int(settings.get("min_trials_required", "3"))
        self._start_step = int(settings.get("start_step", "4"))
        self._metric: str = objective["objectiveMetricName"]
        self._comparison = "less" if objective["type"] == "maximize" else "greater"
        self._reports = reports
        self._means: dict[str, float] = {}

    def rules(self, trials: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the early stopping rules for trials that are suggested now: one, or none as long as too few succeeded.

        Raises:
            ValueError: a report is no number, or a succeeded trial has none.
        """
        for trial in trials:
            name, conditions = trial["metadata"]["name"], conditions_of(trial)
            if name not in self._means and conditions and conditions[-1].get("type") == "Succeeded":
                first = [float(value) for value in self._reports(name)[: self._start_step]]
                if not first:
                    raise ValueError(f"trial {name} has no report of {self._metric}")
                self._means[name] = sum(first) / len(first)
        if len(self._means) < self._least_trials:
            return []
        value = sum(self._means.values()) / len(self._means)
        return [{"name": self._metric, "value": str(value), "comparison": self._comparison, "startStep": self._start_step}]
