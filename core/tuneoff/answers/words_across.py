"""What is claimed across tasks, in words, and what there are too few tasks or seeds for."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from tuneoff.answers.cells import Cell
from tuneoff.answers.frozen import Frozen
from tuneoff.answers.model import AcrossTasks
from tuneoff.answers.phrases import question_text, scope_text
from tuneoff.answers.weights import is_modelled
from tuneoff.report.figures import figure
from tuneoff.report.notes import listed
from tuneoff.words import counted

FEWEST_TASKS = 10  # for a critical difference
FEWEST_SEEDS = 10  # of a task, for its own verdicts
_MOST_NAMED = 12

Cells = Mapping[str, Mapping[str, Cell]]  # by label and task
Medians = Mapping[str, Mapping[str, float]]  # by label and task


def texts(
    made: AcrossTasks,
    asked: Sequence[str],
    cells: Cells,
    plan: Frozen,
    medians: Medians,
    *,
    regret: bool,
    waiting: str | None = None,
) -> Iterator[str]:
    """Yield what is said of it, the claim first.

    Args:
        asked: all tasks.
        regret: the medians are normalised regrets.
        waiting: why nothing may be claimed yet.
    """
    tasks, pairs = len(made.tasks), len(made.wilcoxon)
    if not made.tasks:
        yield f"{_head(made, asked, regret)}: nothing can be said: {_nothing(made, cells, plan, regret)}."
        return
    claim = _claim(made, medians, plan) if waiting is None else f"nothing is claimed yet: {waiting}"
    yield f"{_head(made, made.tasks, regret)}: {claim}."
    yield from _lacking(made, asked)
    most = max((len(found) for found in made.tasks_of.values()), default=tasks)
    family = max(plan.family_size, pairs)
    least = 2.0 ** (1 - most) * family
    if pairs and least > plan.error:
        yield (
            f"{counted(most, 'task')} cannot show a difference in a family of {counted(family, 'pair')}: the least p that they "
            f"allow is {figure(min(1.0, least))}."
        )
    if _is_modelled(made, cells):
        yield "Modelled energy: p is the greatest over the plausible weights; probabilities and ranks are at the default weights."
    if tasks < FEWEST_TASKS:
        yield f"There is no critical difference: it needs {FEWEST_TASKS} tasks, and there are {tasks}."
    seeds = sorted({sum(run.has_ended for run in cell.runs) for of in cells.values() for cell in of.values()})
    few = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    if seeds and seeds[0] < FEWEST_SEEDS:
        yield f"Each task has {few} seeds: its median is uncertain, and seeds are no tasks, so they add nothing to the test's n."
    failed = sum(run.has_failed for of in cells.values() for cell in of.values() for run in cell.runs)
    if failed:
        worst = "as the worst anchor in the IQM, and " if regret else ""
        yield f"{counted(failed, 'run')} failed, and counts {worst}as worse than any success in ranks."
    workloads = dict.fromkeys(cell.spec.experiment.workload.name for of in cells.values() for cell in of.values())
    yield f"The claim is over these {tasks} tasks of {listed(workloads)}: {_named(made.tasks)}. Of others nothing is said."


def _is_modelled(made: AcrossTasks, cells: Cells) -> bool:
    every = [cell for of in cells.values() for cell in of.values()]
    return any(is_modelled(cell, cell, made.question.metric) for cell in every)


def _head(made: AcrossTasks, tasks: Sequence[str], regret: bool) -> str:
    by = " by normalised regret on validation" if regret else " by the medians of the tasks"
    return f"{question_text(made.question)}, over {counted(len(tasks), 'task')}, {scope_text(made.scope)},{by}"


def _claim(made: AcrossTasks, medians: Medians, plan: Frozen) -> str:
    if not made.wilcoxon:
        return "there are no two adapters to compare"
    claims = []
    for (one, other), p in made.wilcoxon.items():
        if p <= plan.error:
            tasks = made.tasks_of[one, other]
            ours, theirs = ([medians[label][task] for task in tasks] for label in (one, other))
            first, second, ahead, behind = (one, other, ours, theirs) if _is_lower(ours, theirs) else (other, one, theirs, ours)
            wins = sum(left < right for left, right in zip(ahead, behind, strict=True))
            claims.append(f"{first} is ahead of {second} in {wins} of {len(tasks)} tasks (p {figure(p)}, Wilcoxon, Bonferroni)")
    if claims:
        return "; ".join(claims)
    least = min(made.wilcoxon.values())
    return f"no pair is shown to differ (least p {figure(least)}, Wilcoxon on the medians of tasks, Bonferroni)"


def _lacking(made: AcrossTasks, asked: Sequence[str]) -> Iterator[str]:
    """Yield which tasks are in no pair, and which pairs lack some of the others."""
    left_out = [task for task in asked if task not in made.tasks]
    if left_out:
        yield f"{counted(len(left_out), 'task')} left out, because no two adapters have a value there: {_named(left_out)}."
    few = [f"{one} and {other} in {len(found)}" for (one, other), found in made.tasks_of.items() if len(found) < len(made.tasks)]
    if few:
        yield f"Pairs that have values in fewer tasks: {listed(few)}. Intervals and ranks are over the tasks that all have."


def _is_lower(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether the first is better over the tasks: smaller in more of them, and where that is even by the median."""
    ahead = sum((ours < theirs) - (ours > theirs) for ours, theirs in zip(one, other, strict=True))
    return ahead > 0 if ahead else statistics.median(one) < statistics.median(other)


def _nothing(made: AcrossTasks, cells: Cells, plan: Frozen, regret: bool) -> str:
    if not cells:
        return "no adapter is compared"
    if regret and not plan.anchors:
        return "the file has no anchors to normalise regret by (anchors: {random_search, best_known, source} of each task)"
    if regret:
        return "no task has anchors of its objective's metric and a run that is done, of two adapters"
    return f"no task has a value of {made.question.metric} of two adapters, both of one kind"


def _named(tasks: Sequence[str]) -> str:
    return ", ".join(tasks[:_MOST_NAMED]) + (f" and {len(tasks) - _MOST_NAMED} more" if len(tasks) > _MOST_NAMED else "")
