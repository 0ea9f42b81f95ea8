"""The questions of a plan: one declared primary metric each, with unit, direction, scale and the difference that matters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tuneoff.experiment.margin import quality_margin
from tuneoff.experiment.spec import ExperimentSpec
from tuneoff.judge.answers.analysis_plan import Frozen
from tuneoff.judge.answers.answer import Question
from tuneoff.judge.answers.directions import better, default_unit, is_of_objective, is_share, scale

NO_MARGIN = "none"


class Questions:
    """The questions as a scope's experiment asks them: another workload may have another direction and another margin."""

    def __init__(self, frozen: Frozen, analysis: Mapping[str, Any], units: Mapping[str, str]) -> None:
        """`units`: of the metrics, as the records have them."""
        self._frozen, self._analysis, self._units = frozen, analysis, units

    def of(self, experiment: ExperimentSpec, units: Mapping[str, str] | None = None) -> tuple[Question, ...]:
        """Return the questions of an experiment, the primary one first; `units`: as the records of its own scope have them."""
        known = self._units if units is None else units
        return tuple(self._question(name, metric, experiment, known) for name, metric in self._frozen.questions.items())

    def _question(self, name: str, metric: str, experiment: ExperimentSpec, units: Mapping[str, str]) -> Question:
        objective = experiment.objective
        margin, text = self._margin(metric, experiment)
        return Question(
            name=name,
            metric=metric,
            unit=units.get(metric, default_unit(metric, objective.metric)),
            better=better(metric, objective.metric, objective.mode),
            scale=scale(metric),
            margin=margin,
            margin_text=text,
        )

    def _margin(self, metric: str, experiment: ExperimentSpec) -> tuple[float | None, str]:
        if is_of_objective(metric, experiment.objective.metric):
            found = quality_margin(self._analysis, experiment.workload)
            return found.value, found.source if found.value is None else f"{found.value:g} ({found.source})"
        percent = self._frozen.margin_percent
        if percent <= 0:
            return None, f"{NO_MARGIN}: analysis.margin_percent is 0"
        if scale(metric) == "ratio":
            return math.log1p(percent / 100), f"{percent:g} %"
        if is_share(metric):
            return percent, f"{percent:g} percentage points"
        return None, f"{NO_MARGIN}: {metric} has no unit of which {percent:g} % would say anything"


def overall(by_scope: list[tuple[Question, ...]]) -> tuple[Question, ...]:
    """Return each question once for a whole folder; a margin that differs between scopes is said so, and is None."""
    found: dict[str, Question] = {}
    for questions in by_scope:
        for question in questions:
            known = found.setdefault(question.name, question)
            if known.margin != question.margin:
                found[question.name] = replace(known, margin=None, margin_text="differs between scopes: each verdict has its own")
    return tuple(found.values())
