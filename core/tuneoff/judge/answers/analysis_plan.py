"""What the plan froze of the analysis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field, ValidationError

from tuneoff.errors import ResultsError
from tuneoff.experiment.analysis_part import AnalysisPart, AnchorsPart


class _Stored(AnalysisPart):
    """The part of a file as a plan has it, with what was frozen beside it."""

    anchors: dict[str, AnchorsPart] = Field(default_factory=dict)
    seeds: list[int] = Field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """The analysis as it decides verdicts. `seeds`: how many are planned."""

    primary: str
    questions: Mapping[str, str]  # name -> metric, the primary one first
    margin_percent: float
    confidence: float
    family_size: int
    looks: tuple[int, ...]
    seeds: int
    anchors: Mapping[str, AnchorsPart] = field(default_factory=dict)  # by task, "" where there are none

    @property
    def error(self) -> float:
        """The error that a family may have at one look."""
        return (1 - self.confidence) / max(1, len(self.looks))

    def alpha(self, pairs: int) -> float:
        """Return the error that one verdict may have, in a scope with so many pairs."""
        return self.error / max(self.family_size, pairs)


def frozen(analysis: Mapping[str, Any]) -> Frozen:
    """Read the frozen analysis of a plan.

    Raises:
        ResultsError: it is damaged: a value is not one that a file may have.
    """
    try:
        part = _Stored.model_validate({name: analysis[name] for name in _Stored.model_fields if name in analysis})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ResultsError(f"the analysis of a plan is damaged: {where}: {first['msg']}; begin a new folder") from error
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
        looks=tuple(part.looks),
        seeds=len(part.seeds),
        anchors=part.anchors,
    )
