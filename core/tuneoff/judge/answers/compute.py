"""All answers of a results folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tuneoff.base.packages import need_scipy
from tuneoff.judge.answers.across import across_tasks
from tuneoff.judge.answers.analysis_plan import Frozen, Questions, frozen, overall
from tuneoff.judge.answers.answer import Answers, Question, Verdict
from tuneoff.judge.answers.caveats import limits
from tuneoff.judge.answers.claims import claims
from tuneoff.judge.answers.groups import TABLE, group
from tuneoff.judge.answers.judging import Rules, is_elsewhere, pairs, verdict
from tuneoff.judge.answers.phrases import floor_size, is_decided, is_within_noise
from tuneoff.judge.answers.resolution import grid_step
from tuneoff.judge.answers.run_values import units
from tuneoff.judge.results import Results
from tuneoff.judge.runs import Group, by_scope, grouped, noise_pairs
from tuneoff.judge.stats.location import Interval


def answers(results: Results) -> Answers:
    """Return what a results folder says, of a finished matrix or of one that is at work.

    Raises:
        MissingPackageError: scipy is not installed.
    """
    need_scipy("the comparison of frameworks")
    plan = frozen(results.plan.analysis)
    of_scope = by_scope(grouped(results))
    questions = Questions(plan, results.plan.analysis, {})
    shown = {*plan.questions.values(), *TABLE}
    known = {scope: units((run for cell in cells for run in cell.runs), shown) for scope, cells in of_scope.items()}
    asked = {scope: questions.of(cells[0].spec.experiment, known[scope]) for scope, cells in of_scope.items()}
    steps = {scope: grid_step(results, cells) for scope, cells in of_scope.items()}
    prices = results.plan.accounting.prices
    groups = tuple(
        group(cell, asked[scope], known[scope], plan.confidence, steps[scope], prices)
        for scope, cells in of_scope.items()
        for cell in cells
    )
    verdicts = tuple(
        one
        for scope, cells in of_scope.items()
        for one in _verdicts(
            cells,
            asked[scope],
            plan,
            Rules(alpha=1 - plan.confidence, confidence=plan.confidence, looks=plan.looks, grid_step=steps[scope], prices=prices),
        )
    )
    made = Answers(
        name=results.plan.name,
        questions=overall(list(asked.values())),
        scopes=tuple(of_scope),
        groups=groups,
        verdicts=verdicts,
        across=tuple(across_tasks(of_scope, asked, plan, prices)),
        summary=(),
        limits=(),
        statuses=dict(Counter(run.ref.status for own in of_scope.values() for one in own for run in one.runs)),
        family_size=plan.family_size,
        confidence=plan.confidence,
        looks=plan.looks,
        analysis=results.plan.analysis,
    )
    said = tuple(claims(made))
    made = replace(made, claims=said, summary=tuple(one.sentence for one in said))
    return replace(made, limits=tuple(limits(made, of_scope, results, plan)))


def _verdicts(cells: Sequence[Group], questions: Sequence[Question], plan: Frozen, of_noise: Rules) -> Iterator[Verdict]:
    compared = pairs(cells)
    rules = replace(of_noise, alpha=plan.alpha(len(compared)))
    for question in questions:
        noise = [
            (verdict(again, first, question, of_noise, is_noise=True), is_elsewhere(again, first))
            for again, first in noise_pairs(cells)
        ]
        floor = _floor([one for one, _ in noise])
        for one, other in compared:
            yield _beside(verdict(one, other, question, rules), floor)
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
