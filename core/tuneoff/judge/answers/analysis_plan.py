"""What the plan froze of the analysis, with the defaults where an older plan has nothing or somebody damaged it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tuneoff.experiment.metric_names import QUESTIONS
from tuneoff.experiment.schema import AnalysisPart

_DEFAULTS = AnalysisPart()


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchors:
    """What regret is normalised by, of a metric on validation: 1 is the median of random search, 0 the best known value."""

    random_search: float
    best_known: float
    source: str
    metric: str | None = None  # None: the objective's


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """The analysis as it decides verdicts. `added`: what the plan did not freeze, so that it is exploratory."""

    primary: str
    questions: Mapping[str, str]  # name -> metric, the primary one first
    margin_percent: float
    confidence: float
    family_size: int
    looks: tuple[int, ...]
    seeds: tuple[int, ...]
    anchors: Mapping[str, Anchors] = field(default_factory=dict)  # by task, "" where there are none
    added: tuple[str, ...] = ()

    @property
    def error(self) -> float:
        """The error that a family may have at one look."""
        return (1 - self.confidence) / max(1, len(self.looks))

    def alpha(self, pairs: int) -> float:
        """Return the error that one verdict may have, in a scope with so many pairs."""
        return self.error / max(self.family_size, pairs)


def frozen(analysis: Mapping[str, Any]) -> Frozen:
    """Read the frozen analysis of a plan."""
    primary = analysis.get("primary_metric")
    primary = primary if isinstance(primary, str) and primary else _DEFAULTS.primary_metric
    has_questions = isinstance(analysis.get("questions"), Mapping) and bool(analysis["questions"])
    asked = analysis["questions"] if has_questions else QUESTIONS
    questions = {str(name): metric for name, metric in asked.items() if isinstance(metric, str)}
    leading = next((name for name, metric in questions.items() if metric == primary), None)
    if leading is None:  # the plan names it and asks no question of it
        leading = "primary" if "primary" not in questions else primary
        questions[leading] = primary
    family = analysis.get("family_size") if has_questions else None
    added = () if has_questions else (f"the plan is older and froze no questions: {', '.join(questions)} are the defaults",)
    return Frozen(
        primary=leading,
        questions={leading: questions[leading], **questions},
        margin_percent=_number(analysis.get("margin_percent"), _DEFAULTS.margin_percent, 0, 1e6),
        confidence=_number(analysis.get("confidence"), _DEFAULTS.confidence, 1e-9, 1 - 1e-9),
        family_size=family if isinstance(family, int) and family >= 1 else _DEFAULTS.family_size,
        looks=_integers(analysis.get("looks")) if has_questions else (),
        seeds=_integers(analysis.get("seeds")),
        anchors=_anchors(analysis.get("anchors")),
        added=added,
    )


def _number(value: Any, default: float, low: float, high: float) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and low <= value <= high else default


def _integers(value: Any) -> tuple[int, ...]:
    return tuple(item for item in value if isinstance(item, int)) if isinstance(value, list | tuple) else ()


def _anchors(value: Any) -> dict[str, Anchors]:
    if not isinstance(value, Mapping):
        return {}
    found = {}
    for task, anchors in value.items():
        try:
            search, best = float(anchors["random_search"]), float(anchors["best_known"])
        except (TypeError, ValueError, LookupError):
            continue
        if search != best:
            metric = anchors.get("metric")
            source = str(anchors.get("source") or "unknown")
            found[str(task)] = Anchors(
                random_search=search, best_known=best, source=source, metric=metric if isinstance(metric, str) else None
            )
    return found
