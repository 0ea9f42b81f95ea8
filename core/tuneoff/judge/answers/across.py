"""What holds over the tasks of a file: claims about these tasks by paired differences, and what describes them.

Quality is compared by normalised regret on validation, whose interquartile mean describes, and claims nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from tuneoff.base.format import counted
from tuneoff.experiment.variants import TASK
from tuneoff.judge.answers.across_texts import texts
from tuneoff.judge.answers.analysis_plan import Frozen
from tuneoff.judge.answers.answer import AcrossTasks, OverTasks, Question
from tuneoff.judge.answers.over_tasks import TaskComparison, anchors_of, bounded, regrets
from tuneoff.judge.groups import Group, noise_pairs
from tuneoff.judge.run_values import is_of_objective, value
from tuneoff.judge.runs import Scope
from tuneoff.judge.stats.location import Interval
from tuneoff.judge.stats.tasks import stratified_iqm

Cells = Mapping[str, Mapping[str, Group]]  # by label and task
Scores = dict[str, list[float]]  # by task, smaller is better, a failed run +inf


@dataclass(slots=True, kw_only=True)
class _Family:
    """The scopes that differ in their task alone."""

    scope: Scope
    question: Question
    cells: dict[str, dict[str, Group]] = field(default_factory=dict)  # label -> task -> cell
    tasks: list[str] = field(default_factory=list)
    noise: dict[tuple[str, str], list[tuple[Group, Group]]] = field(default_factory=dict)  # (again, first) by labels


def across_tasks(
    of_scope: Mapping[Scope, Sequence[Group]],
    questions: Mapping[Scope, Sequence[Question]],
    plan: Frozen,
) -> Iterator[AcrossTasks]:
    """Yield each question over the tasks of the file, by sampler, pruner and variant; nothing for a file without tasks."""
    for place in range(len(plan.questions)):
        for family in _families(of_scope, questions, place):
            yield _across(family, plan)


def _families(
    of_scope: Mapping[Scope, Sequence[Group]], questions: Mapping[Scope, Sequence[Question]], place: int
) -> list[_Family]:
    found: dict[str, _Family] = {}
    for scope, cells in of_scope.items():
        if not scope.task:
            continue
        key = cells[0].spec.scope_key(TASK)
        text = scope.text.removesuffix(f" {scope.task}")
        whole = Scope(sampler=scope.sampler, pruner=scope.pruner, variant=scope.variant, task="", text=text)
        family = found.setdefault(key, _Family(scope=whole, question=questions[scope][place]))
        family.tasks.append(scope.task)
        for cell in cells:
            if cell.is_compared and cell.spec.replicate == 0:
                family.cells.setdefault(cell.label, {})[scope.task] = cell
        for again, first in noise_pairs(cells):
            family.noise.setdefault((again.label, first.label), []).append((again, first))
    return list(found.values())


def _across(family: _Family, plan: Frozen) -> AcrossTasks:
    question = family.question
    waiting = _waiting(family.cells)
    is_quality = _is_quality(family)
    comparison = TaskComparison(question=question, plan=plan, is_quality=is_quality)
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
    key = (question.name, question.metric, family.scope.text)
    complete = {label: {task: scores[label][task] for task in whole} for label in labels} if whole else {}
    made = AcrossTasks(
        question=question,
        scope=family.scope,
        tasks=tuple(tasks),
        labels=labels,
        iqm_regret=_iqm(complete, plan, key) if is_quality else {},
        compared=tuple(compared(family.cells, tasks_of, comparison, family.noise.values())) if waiting is None else (),
        tasks_of=tasks_of,
        is_regret=is_quality,
    )
    said = texts(made, family.tasks, family.cells, plan, waiting)
    return replace(made, texts=tuple(said))


def compared(
    cells: Cells,
    tasks_of: Mapping[tuple[str, str], Sequence[str]],
    comparison: TaskComparison,
    noise: Iterable[Sequence[tuple[Group, Group]]] = (),
) -> Iterator[OverTasks]:
    """Yield what the tasks say of each pair, in a family that no other adapter changes, then of each A/A pair that has ended."""
    family = max(comparison.plan.family_size, len(tasks_of))
    for (one, other), tasks in tasks_of.items():
        yield comparison.over(cells[one], cells[other], tasks, family)
    for pairs in noise:
        again, first = ({pair[place].scope.task: pair[place] for pair in pairs} for place in (0, 1))
        if _waiting({"again": again, "first": first}) is None:
            yield comparison.over(again, first, list(again), 1, is_noise=True)


def _scores(cells: Mapping[str, Group], question: Question, plan: Frozen, is_quality: bool) -> Scores:
    """Return the scores of a label by task; a task without a value of any run is left out, one in which all failed is not."""
    found: Scores = {}
    for task, cell in cells.items():
        if is_quality:
            anchors = anchors_of(cell, plan)
            scores = regrets(cell, anchors) if anchors is not None else []
        else:
            sign = 1.0 if question.better == "min" else -1.0
            scores = [sign * one if math.isfinite(one) else one for one in _values(cell, question.metric)]
        if any(math.isfinite(score) for score in scores) or (scores and _has_failed(cell)):
            found[task] = scores
    return found


def _has_failed(cell: Group) -> bool:
    """Whether every run failed: that is worse than any success, and not a task without the metric."""
    return all(run.has_failed for run in cell.runs if run.will_run)


def _values(cell: Group, metric: str) -> list[float]:
    """Return the values of the runs that have one, and +inf for each that failed."""
    found = ((run, value(run, metric).value) for run in cell.runs)
    return [*(one for _, one in found if one is not None), *(math.inf for run in cell.runs if run.has_failed)]


def _iqm(scores: Mapping[str, Scores], plan: Frozen, key: tuple[str, ...]) -> dict[str, Interval]:
    return {
        label: stratified_iqm({task: bounded(found) for task, found in by_task.items()}, plan.confidence, key=(*key, label))
        for label, by_task in scores.items()
    }


def _is_quality(family: _Family) -> bool:
    """Whether the question is of the selected model's quality, which is compared by regret."""
    metrics = {cell.spec.experiment.objective.metric for cells in family.cells.values() for cell in cells.values()}
    return bool(metrics) and all(is_of_objective(family.question.metric, metric) for metric in metrics)


def _has_several_kinds(family: _Family, labels: Sequence[str]) -> bool:
    cells = (cell for label in labels for cell in family.cells[label].values())
    kinds = {value(run, family.question.metric).kind for cell in cells for run in cell.runs}
    return len(kinds - {None}) > 1


def _waiting(cells: Cells) -> str | None:
    """Return why no claim may be made yet: runs of a task have not ended.

    It is the rule of verdicts within a task: who claims whenever one more run has ended finds something in equal adapters too.
    """
    every = [cell for of in cells.values() for cell in of.values()]
    planned = sum(len(cell.by_seed) for cell in every)
    ended = sum(run.has_ended for cell in every for run in cell.by_seed.values())
    return None if ended == planned else f"{ended} of {counted(planned, 'planned run')} of these tasks have ended"
