"""The seeds of a framework as dots on an axis that all frameworks share, each with the run behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tuneoff.judge.answers.answer import EstimatedGroup, Question
from tuneoff.judge.answers.phrases import shown, value_text
from tuneoff.judge.stats.failures_as_infinity import middle
from tuneoff.tell.plots.drawing import Scale, scale, spread_out

MOST_DOTS = 100  # of a row


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A run. `at`: from 0 to 1; `text`: its seed and value."""

    at: float
    text: str
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """A row of dots. `median`: where it stands, None where most runs failed; `failed`: seeds without a value as they failed."""

    dots: tuple[Dot, ...]
    median: float | None
    failed: tuple[int, ...]
    more: int  # dots that are not drawn


def shared_scale(groups: Sequence[EstimatedGroup], question: Question) -> Scale | None:
    """Return the axis of a question's values over some groups, in the unit that people read."""
    _, factor = shown(question.metric, question.unit)
    return scale(factor * value for group in groups for _, value in values(group, question))


def axis_unit(question: Question) -> str:
    """Return the unit of its axis, "" for a score."""
    return shown(question.metric, question.unit)[0]


def strip(group: EstimatedGroup, question: Question, axis: Scale) -> Strip:
    """Return the dots of a group."""
    found = sorted(values(group, question), key=lambda item: item[1])
    _, factor = shown(question.metric, question.unit)
    runs = {run.seed: run.run_id for run in group.runs}
    drawn = [found[place] for place in spread_out(len(found), MOST_DOTS)]
    failed = tuple(run.seed for run in group.runs if run.is_failure)
    worst = math.inf if question.better == "min" else -math.inf
    middle_value = middle([*(value for _, value in found), *(worst for _ in failed)]) if found else worst
    return Strip(
        dots=tuple(
            Dot(
                at=axis.at(factor * value),
                text=f"seed {seed}: {value_text(value, question.metric, question.unit)}",
                run_id=runs[seed],
            )
            for seed, value in drawn
        ),
        median=axis.at(factor * middle_value) if math.isfinite(middle_value) else None,
        failed=failed,
        more=len(found) - len(drawn),
    )


def values(group: EstimatedGroup, question: Question) -> list[tuple[int, float]]:
    """Return (seed, value) of the runs that have one."""
    estimate = group.estimates.get(question.metric)
    return [(one.seed, one.value) for one in (estimate.values if estimate else ()) if one.value is not None]
