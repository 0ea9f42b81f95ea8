"""Claims across the tasks of a file: a task is the unit of evidence, a seed is not.

Quality is compared by normalised regret on validation, everything else by the medians of its tasks.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from tuneoff.answers.cells import Cell, Matrix
from tuneoff.answers.differences import Measure
from tuneoff.answers.directions import is_of_objective
from tuneoff.answers.frozen import Frozen
from tuneoff.answers.model import AcrossTasks, Question, Scope
from tuneoff.answers.regret import anchors_of, bounded, regrets
from tuneoff.answers.run_values import value
from tuneoff.answers.settled import settled
from tuneoff.answers.weights import ENDS, is_modelled, weighted
from tuneoff.answers.words_across import FEWEST_TASKS, texts
from tuneoff.experiment.identity import canonical_json
from tuneoff.stats.interval import Interval
from tuneoff.stats.ranks import critical_difference, friedman, wilcoxon
from tuneoff.stats.tasks import probability_of_improvement, stratified_iqm

Scores = dict[str, list[float]]  # by task, smaller is better, a failed run +inf


@dataclass(slots=True, kw_only=True)
class _Family:
    """The scopes that differ in their task alone."""

    scope: Scope
    question: Question
    cells: dict[str, dict[str, Cell]] = field(default_factory=dict)  # label -> task -> cell
    tasks: list[str] = field(default_factory=list)


def across_tasks(matrix: Matrix, questions: Mapping[Scope, Sequence[Question]], plan: Frozen) -> Iterator[AcrossTasks]:
    """Yield each question over the tasks of the file, by sampler, pruner and variant; nothing for a file without tasks."""
    for place in range(len(plan.questions)):
        for family in _families(matrix, questions, place):
            yield _across(family, plan)


def _families(matrix: Matrix, questions: Mapping[Scope, Sequence[Question]], place: int) -> list[_Family]:
    found: dict[str, _Family] = {}
    for scope, cells in matrix.by_scope.items():
        if not scope.task:
            continue
        experiment = cells[0].spec.experiment
        strategies = [[one.name, dict(one.options)] for one in (experiment.sampler, experiment.pruner)]
        key = canonical_json([strategies, scope.variant])
        text = scope.text.removesuffix(f" {scope.task}")
        whole = Scope(sampler=scope.sampler, pruner=scope.pruner, variant=scope.variant, task="", text=text)
        family = found.setdefault(key, _Family(scope=whole, question=questions[scope][place]))
        family.tasks.append(scope.task)
        for cell in cells:
            if cell.is_compared and cell.spec.replicate == 0:
                family.cells.setdefault(cell.label, {})[scope.task] = cell
    return list(found.values())


def _across(family: _Family, plan: Frozen) -> AcrossTasks:
    question = family.question
    family.cells, waiting = settled(family.cells, plan.looks)
    is_quality = _is_quality(family)
    scores = {label: _scores(cells, question, plan, is_quality) for label, cells in family.cells.items()}
    scores = {label: found for label, found in scores.items() if found}
    tasks_of = {
        (one, other): tuple(task for task in family.tasks if task in scores[one] and task in scores[other])
        for one, other in combinations(scores, 2)
        if is_quality or not _has_several_kinds(family, (one, other))
    }
    tasks_of = {names: tasks for names, tasks in tasks_of.items() if tasks}
    is_one_kind = is_quality or not _has_several_kinds(family, tuple(scores))
    whole = [task for task in family.tasks if scores and is_one_kind and all(task in found for found in scores.values())]
    tasks = [task for task in family.tasks if task in whole or any(task in found for found in tasks_of.values())]
    labels = tuple(scores) if tasks else ()
    medians = {label: {task: _median(found) for task, found in scores[label].items()} for label in labels}
    key = (question.name, question.metric, family.scope.text)
    complete = {label: {task: scores[label][task] for task in whole} for label in labels} if whole else {}
    made = AcrossTasks(
        question=question,
        scope=family.scope,
        tasks=tuple(tasks),
        labels=labels,
        iqm_regret=_iqm(complete, plan, key) if is_quality else {},
        improvement={
            (one, other): probability_of_improvement(
                {task: scores[one][task] for task in found},
                {task: scores[other][task] for task in found},
                plan.confidence,
                key=(*key, one, other),
            )
            for (one, other), found in tasks_of.items()
        },
        wilcoxon=_wilcoxon(family, tasks_of, medians, plan) if waiting is None else {},
        ranks=_ranks(medians, labels, whole) if waiting is None else {},
        critical_difference=critical_difference(len(labels), len(whole)) if _is_comparable(whole, labels, waiting) else None,
        tasks_of=tasks_of,
    )
    said = texts(made, family.tasks, family.cells, plan, medians, regret=is_quality, waiting=waiting)
    return replace(made, texts=tuple(said))


def _is_comparable(tasks: Sequence[str], labels: Sequence[str], waiting: str | None) -> bool:
    return waiting is None and len(tasks) >= FEWEST_TASKS and len(labels) > 1


def _scores(cells: Mapping[str, Cell], question: Question, plan: Frozen, is_quality: bool) -> Scores:
    """Return the scores of a label by task; a task without a value of any run is left out, one in which all failed is not."""
    found: Scores = {}
    for task, cell in cells.items():
        if is_quality:
            anchors = anchors_of(cell, plan)
            scores = regrets(cell, anchors) if anchors is not None else []
        else:
            sign = 1.0 if question.better == "min" else -1.0
            scores = [sign * one if math.isfinite(one) else one for one in _values(cell, question.metric, value)]
        if any(math.isfinite(score) for score in scores) or (scores and _has_failed(cell)):
            found[task] = scores
    return found


def _has_failed(cell: Cell) -> bool:
    """Whether every run failed: that is worse than any success, and not a task without the metric."""
    return all(run.has_failed for run in cell.runs if run.will_run)


def _values(cell: Cell, metric: str, measure: Measure) -> list[float]:
    """Return the values of the runs that have one, and +inf for each that failed."""
    found = ((run, measure(run, metric).value) for run in cell.runs)
    return [*(one for _, one in found if one is not None), *(math.inf for run in cell.runs if run.has_failed)]


def _iqm(scores: Mapping[str, Scores], plan: Frozen, key: tuple[str, ...]) -> dict[str, Interval]:
    return {
        label: stratified_iqm({task: bounded(found) for task, found in by_task.items()}, plan.confidence, key=(*key, label))
        for label, by_task in scores.items()
    }


def _wilcoxon(
    family: _Family,
    tasks_of: Mapping[tuple[str, str], Sequence[str]],
    medians: Mapping[str, Mapping[str, float]],
    plan: Frozen,
) -> dict[tuple[str, str], float]:
    """Return the p of each pair on the medians of its tasks, times the family's size, so that no other adapter changes it.

    Of modelled energy the greatest p over the weights.
    """
    found = {}
    for (one, other), tasks in tasks_of.items():
        ours, theirs = ([medians[label][task] for task in tasks] for label in (one, other))
        p = _p(family.question, ours, theirs)
        cells = [(family.cells[one][task], family.cells[other][task]) for task in tasks]
        if any(is_modelled(left, right, family.question.metric) for left, right in cells):
            p = max([p, *(_weighted_p(family.question, cells, ratio, ours, theirs) for ratio in ENDS.values())])
        found[one, other] = min(1.0, p * max(plan.family_size, len(tasks_of)))
    return found


def _p(question: Question, one: Sequence[float], other: Sequence[float]) -> float:
    """Return Wilcoxon's p; on the ratio scale of the logarithms, so that a task with long runs does not outweigh the others."""
    if question.scale == "ratio":
        sign = 1 if question.better == "min" else -1
        if any(math.isfinite(value) and sign * value < 0 for value in (*one, *other)):
            return 1.0  # a value below 0 has no ratio, and its logarithm no order
        one, other = ([_log(value) for value in values] for values in (one, other))
    return wilcoxon(one, other)


def _weighted_p(
    question: Question, cells: Sequence[tuple[Cell, Cell]], ratio: float, ours: Sequence[float], theirs: Sequence[float]
) -> float:
    """Return p at a ratio of the model's weights; 1 where they cannot be applied, or the order of the medians is another."""
    measure = weighted(ratio)
    medians: tuple[list[float], list[float]] = ([], [])
    for pair in cells:
        for cell, column in zip(pair, medians, strict=True):
            scores = _values(cell, question.metric, measure)
            if not scores:
                return 1.0
            column.append(_median(scores))
    return _p(question, *medians) if _ahead(*medians) * _ahead(ours, theirs) > 0 else 1.0


def _ahead(one: Sequence[float], other: Sequence[float]) -> int:
    """Return in how many more tasks the first is lower."""
    return sum((ours < theirs) - (ours > theirs) for ours, theirs in zip(one, other, strict=True))


def _is_quality(family: _Family) -> bool:
    """Whether the question is of the selected model's quality, which is compared by regret."""
    metrics = {cell.spec.experiment.objective.metric for cells in family.cells.values() for cell in cells.values()}
    return bool(metrics) and all(is_of_objective(family.question.metric, metric) for metric in metrics)


def _has_several_kinds(family: _Family, labels: Sequence[str]) -> bool:
    cells = (cell for label in labels for cell in family.cells[label].values())
    kinds = {value(run, family.question.metric).kind for cell in cells for run in cell.runs}
    return len(kinds - {None}) > 1


def _ranks(medians: Mapping[str, Mapping[str, float]], labels: Sequence[str], tasks: Sequence[str]) -> dict[str, float]:
    if len(labels) < 2 or len(tasks) < 2:
        return {}
    table = [[medians[label][task] for label in labels] for task in tasks]
    return dict(zip(labels, friedman(table).mean_ranks, strict=True))


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2 or ordered[middle] == ordered[middle - 1]:
        return ordered[middle]
    return math.inf if math.isinf(ordered[middle]) else statistics.fmean(ordered[middle - 1 : middle + 1])


def _log(value: float) -> float:
    """Return the logarithm of a score that is better small; what is better great came with its sign turned."""
    if math.isinf(value):
        return value
    if value == 0:
        return math.copysign(math.inf, -math.copysign(1, value))  # 0 is better by any ratio; -0.0 is the worst of the turned ones
    return math.log(value) if value > 0 else -math.log(-value)
