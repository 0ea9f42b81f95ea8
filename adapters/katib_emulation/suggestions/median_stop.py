"""`medianstop`: the rule that a new trial gets. Its name says median; what Katib computes is a mean of means.

Over the first `start_step` reports of each succeeded trial the mean is taken, and the mean of those is the rule's value, once
`min_trials_required` trials have succeeded. The rule is fixed when a trial is suggested. Whoever runs the trial compares its best
report so far with the rule exactly once, at its `start_step`-th report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from katib_emulation.conditions import conditions_of
from katib_emulation.suggestions.settings import settings_of

Reports = Callable[[str], Sequence[str]]
"""Gives the objective's values of a trial, as text, in the order of time."""


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
