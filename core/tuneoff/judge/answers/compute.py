"""All answers of a results folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tuneoff.judge.answers.across import across_tasks
from tuneoff.judge.answers.analysis_plan import Frozen, frozen, overall
from tuneoff.judge.answers.answer import Answers, Question, Verdict
from tuneoff.judge.answers.judging import is_elsewhere, pairs, verdict
from tuneoff.judge.answers.phrases import claims, floor_size, is_decided, is_within_noise
from tuneoff.judge.groups import Group, by_scope, grouped, noise_pairs
from tuneoff.judge.results import Results
from tuneoff.judge.runs import units
from tuneoff.judge.stats.location import Interval


def answers(results: Results) -> Answers:
    """Return what a results folder says, of a finished matrix or of one that is at work."""
    plan = frozen(results.plan.analysis)
    groups = grouped(results, plan.confidence)
    of_scope = by_scope(groups)
    asked = {
        scope: plan.questions_of(
            cells[0].spec.experiment, units((run for cell in cells for run in cell.runs), plan.questions.values())
        )
        for scope, cells in of_scope.items()
    }
    made = Answers(
        name=results.plan.name,
        questions=overall(list(asked.values())),
        scopes=tuple(of_scope),
        groups=tuple(groups),
        verdicts=tuple(one for scope, cells in of_scope.items() for one in _verdicts(cells, asked[scope], plan)),
        across=tuple(across_tasks(of_scope, asked, plan)),
        statuses=dict(Counter(run.status for group in groups for run in group.runs)),
        family_size=plan.family_size,
        confidence=plan.confidence,
        analysis=results.plan.analysis,
    )
    return replace(made, claims=tuple(claims(made)))


def _verdicts(cells: Sequence[Group], questions: Sequence[Question], plan: Frozen) -> Iterator[Verdict]:
    compared = pairs(cells)
    alpha = plan.alpha(len(compared))
    for question in questions:
        noise = [
            (verdict(again, first, question, plan.error, is_noise=True), is_elsewhere(again, first))
            for again, first in noise_pairs(cells)
        ]
        floor = _floor([one for one, _ in noise])
        for one, other in compared:
            yield _beside(verdict(one, other, question, alpha), floor)
        yield from (one for one, is_told_elsewhere in noise if not is_told_elsewhere)


def _beside(found: Verdict, floor: Interval | None) -> Verdict:
    """Return a verdict with the noise floor beside it; a difference that equal entries have too is said to be so."""
    reason = found.reason
    if is_decided(found) and is_within_noise(found.interval, floor):
        reason += "; it is no larger than the noise floor, and a framework differs as much from itself"
    return replace(found, noise_floor=floor, reason=reason)


def _floor(noise: Sequence[Verdict]) -> Interval | None:
    """Return the interval of the A/A pair that reaches furthest from 0."""
    found = [one.interval for one in noise if one.interval is not None]
    return max(found, key=floor_size, default=None)
