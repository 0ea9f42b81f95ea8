"""All answers of a results folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tuneoff.answers.across import across_tasks
from tuneoff.answers.cells import Cell, Matrix
from tuneoff.answers.frozen import Frozen, frozen
from tuneoff.answers.grid import grid_step
from tuneoff.answers.groups import TABLE, group
from tuneoff.answers.judging import Rules, verdict
from tuneoff.answers.limits import limits
from tuneoff.answers.model import Answers, Question, Verdict
from tuneoff.answers.pairing import is_elsewhere, noise_pairs, pairs
from tuneoff.answers.phrases import floor_size, is_decided, is_within_noise
from tuneoff.answers.questions import Questions, overall
from tuneoff.answers.results import Results
from tuneoff.answers.run_values import units
from tuneoff.answers.summary import claims
from tuneoff.packages import need_scipy
from tuneoff.stats.interval import Interval


def answers(results: Results) -> Answers:
    """Return what a results folder says, of a finished matrix or of one that is at work.

    Raises:
        MissingPackageError: scipy is not installed.
    """
    need_scipy("the comparison of adapters")
    plan = frozen(results.plan.analysis)
    matrix = Matrix(results)
    questions = Questions(plan, results.plan.analysis, {})
    shown = {*plan.questions.values(), *TABLE}
    known = {scope: units((run for cell in cells for run in cell.runs), shown) for scope, cells in matrix.by_scope.items()}
    by_scope = {scope: questions.of(cells[0].spec.experiment, known[scope]) for scope, cells in matrix.by_scope.items()}
    steps = {scope: grid_step(results, cells) for scope, cells in matrix.by_scope.items()}
    groups = tuple(
        group(cell, by_scope[scope], known[scope], plan.confidence, steps[scope])
        for scope, cells in matrix.by_scope.items()
        for cell in cells
    )
    verdicts = tuple(
        one for scope, cells in matrix.by_scope.items() for one in _verdicts(cells, by_scope[scope], plan, steps[scope])
    )
    made = Answers(
        name=results.plan.name,
        questions=overall(list(by_scope.values())),
        scopes=matrix.scopes,
        groups=groups,
        verdicts=verdicts,
        across=tuple(across_tasks(matrix, by_scope, plan)),
        summary=(),
        limits=(),
        statuses=dict(Counter(run.ref.status for cell in matrix.cells for run in cell.runs)),
        family_size=plan.family_size,
        confidence=plan.confidence,
        looks=plan.looks,
        analysis=results.plan.analysis,
        exploratory=plan.added,
    )
    said = tuple(claims(made))
    made = replace(made, claims=said, summary=tuple(one.sentence for one in said))
    return replace(made, limits=tuple(limits(made, matrix, results, plan)))


def _verdicts(cells: Sequence[Cell], questions: Sequence[Question], plan: Frozen, step: float) -> Iterator[Verdict]:
    compared = pairs(cells)
    rules = Rules(alpha=plan.alpha(len(compared)), confidence=plan.confidence, looks=plan.looks, grid_step=step)
    of_noise = replace(rules, alpha=1 - plan.confidence)
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
        reason += "; it is no larger than the noise floor, so equal entries may differ as much"
    return replace(found, noise_floor=floor, reason=reason)


def _floor(noise: Sequence[Verdict]) -> Interval | None:
    """Return the interval of the A/A pair that reaches furthest from 0."""
    found = [one.interval for one in noise if one.interval is not None]
    return max(found, key=floor_size, default=None)
