"""The parts of the experiment file that say what is decided, on which metrics, and against which anchors."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from tuneoff.experiment.metric_catalogue import QUESTIONS, is_metric, unknown_metric
from tuneoff.experiment.part import Count, Name, Part, PlainName


def _known_metric(name: str) -> str:
    if not is_metric(name):
        raise ValueError(unknown_metric(name))
    return name


MetricName = Annotated[Name, AfterValidator(_known_metric)]


class AnalysisPart(Part):
    """What is frozen before the first run: the metrics that decide, the smallest differences that matter, confidence."""

    primary_metric: MetricName = QUESTIONS["time"]
    questions: Annotated[dict[PlainName, MetricName], Field(min_length=1, max_length=20)] = Field(
        default_factory=lambda: dict(QUESTIONS), description="One primary metric per question; all others are descriptive."
    )
    margin_percent: Annotated[float, Field(ge=0)] = 5.0
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
    quality_margin: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="Of the selected model's test score; null: the workload's own."
    )
    family_size: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=15, description="Pairs that a question may have in a setting: Bonferroni's m. 15 are all pairs of six adapters."
    )
    looks: Annotated[list[Count], Field(max_length=3)] = Field(
        default_factory=list,
        description="Numbers of seeds at which verdicts may be made before all have ended; they share alpha.",
    )

    @model_validator(mode="after")
    def _increasing(self) -> AnalysisPart:
        if self.looks != sorted(set(self.looks)):
            raise ValueError(f"looks must increase, but got {self.looks}")
        return self


class AnchorsPart(Part):
    """What regret is normalised by, both of the objective's metric on *validation*: 1 is random search, 0 the best known."""

    random_search: float = Field(description="Median over seeds of what random search selects with the full budget.")
    best_known: float = Field(description="The best value that anybody knows.")
    source: Annotated[str, Field(min_length=1, max_length=300)] = Field(description="Where both are from.")

    @model_validator(mode="after")
    def _apart(self) -> AnchorsPart:
        if self.random_search == self.best_known:
            raise ValueError(f"random_search and best_known must differ, but both are {self.best_known}")
        return self
