"""What the plan froze of the analysis, and the questions that follow: one declared metric each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from tuneoff.base.reading import Refused, read
from tuneoff.errors import ResultsError
from tuneoff.experiment.analysis import quality_margin
from tuneoff.experiment.metric_catalogue import metric as definition
from tuneoff.experiment.schema import AnalysisPart, AnchorsPart
from tuneoff.experiment.spec import ExperimentSpec
from tuneoff.judge.answers.answer import Question
from tuneoff.judge.metrics import better, default_unit, is_of_objective

NO_MARGIN = "none"


class _Stored(AnalysisPart, frozen=True, kw_only=True):
    """The part of a file as a plan has it, with what was frozen beside it."""

    anchors: dict[str, AnchorsPart] = msgspec.field(default_factory=dict)
    seeds: list[int] = msgspec.field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """The analysis as it decides verdicts. `seeds`: how many are planned; `stated`: all of it, as the plan has it."""

    primary: str
    questions: Mapping[str, str]  # name -> metric, the primary one first
    margin_percent: float
    confidence: float
    family_size: int
    seeds: int
    anchors: Mapping[str, AnchorsPart] = field(default_factory=dict)  # by task, "" where there are none
    weights: Mapping[str, float] = field(default_factory=dict)  # by task: of one score over them; none: nobody asked for it
    stated: Mapping[str, Any] = field(default_factory=dict)

    @property
    def error(self) -> float:
        """The error that a family may have."""
        return 1 - self.confidence

    def alpha(self, pairs: int) -> float:
        """Return the error that one verdict may have, in a scope with so many pairs."""
        return self.error / max(self.family_size, pairs)

    def questions_of(self, experiment: ExperimentSpec) -> tuple[Question, ...]:
        """Return the questions as an experiment asks them, the primary one first.

        Another workload may have another direction and another margin.
        """
        return tuple(self.question(name, metric, experiment) for name, metric in self.questions.items())

    def question(self, name: str, metric: str, experiment: ExperimentSpec) -> Question:
        """Return a question on a metric as an experiment asks it."""
        objective, percent, of = experiment.objective, self.margin_percent, definition(metric)
        margin: float | None = None
        if is_of_objective(metric, objective.metric):
            of_quality = quality_margin(self.stated, experiment.workload)
            margin, source = of_quality.value, of_quality.source
            text = source if margin is None else f"{margin:g} ({source})"
        elif percent <= 0:
            text = f"{NO_MARGIN}: analysis.margin_percent is 0"
        elif of.scale == "ratio":
            margin, text = math.log1p(percent / 100), f"{percent:g} %"
        elif of.unit == "%":
            margin, text = percent, f"{percent:g} percentage points"
        else:
            text = f"{NO_MARGIN}: {metric} has no unit of which {percent:g} % would say anything"
        return Question(
            name=name,
            metric=metric,
            unit=default_unit(metric, objective.metric),
            better=better(metric, objective.metric, objective.mode),
            scale=of.scale,
            margin=margin,
            margin_text=text,
        )


def frozen(analysis: Mapping[str, Any]) -> Frozen:
    """Read the frozen analysis of a plan.

    Raises:
        ResultsError: it is damaged: a value is not one that a file may have.
    """
    try:
        part = read(_Stored, {name: analysis[name] for name in _Stored.__struct_fields__ if name in analysis})
    except Refused as error:
        raise ResultsError(f"the analysis of a plan is damaged: {error}; begin a new folder") from error
    questions = part.questions
    leading = next((name for name, metric in questions.items() if metric == part.primary_metric), None)
    if leading is None:  # the file names it and asks no question of it
        leading = "primary" if "primary" not in questions else part.primary_metric
    return Frozen(
        primary=leading,
        questions={leading: part.primary_metric, **questions},
        margin_percent=part.margin_percent,
        confidence=part.confidence,
        family_size=part.family_size,
        seeds=len(part.seeds),
        anchors=part.anchors,
        weights=part.weights or {},
        stated=analysis,
    )


def overall(by_scope: list[tuple[Question, ...]]) -> tuple[Question, ...]:
    """Return each question once for a whole folder; a margin that differs between scopes is said so, and is None."""
    by_name: dict[str, Question] = {}
    for questions in by_scope:
        for question in questions:
            first = by_name.setdefault(question.name, question)
            if first.margin != question.margin:
                by_name[question.name] = replace(
                    first, margin=None, margin_text="differs between scopes: each verdict has its own"
                )
    return tuple(by_name.values())
