"""What is claimed across tasks, in words, and what there are too few tasks or seeds for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tuneoff.base.format import counted, figure, listed
from tuneoff.judge.answers.analysis_plan import Frozen
from tuneoff.judge.answers.answer import AcrossTasks, OverTasks, Question
from tuneoff.judge.answers.differences import is_modelled
from tuneoff.judge.answers.phrases import difference_text, estimated, failed_runs, question_text, scope_text, size_text
from tuneoff.judge.groups import Group
from tuneoff.judge.stats.sign_flip import least_p

_MOST_NAMED = 12
_WARNING = "A framework named twice (A/A) should not differ from itself and does: distrust what is claimed here"

Cells = Mapping[str, Mapping[str, Group]]  # by label and task


def texts(made: AcrossTasks, asked: Sequence[str], cells: Cells, plan: Frozen, waiting: str | None = None) -> Iterator[str]:
    """Yield what is said of it, the claim first; `asked` are all tasks, `waiting` is why nothing may be claimed yet."""
    tasks, regret = len(made.tasks), made.is_regret
    if not made.tasks:
        yield f"{_head(made, asked, regret)}: nothing can be said: {_nothing(made, cells, plan, regret)}."
        return
    question = compared_by(made)
    pairs = [one for one in made.compared if not one.is_noise]
    claim = _claim(pairs, question, plan) if waiting is None else f"nothing is claimed yet: {waiting}"
    controls = [one for one in made.compared if one.is_noise and one.mean is not None]
    warnings = [f" {_WARNING}: {one.one} against {one.other}, {_chance(plan)}." for one in controls if _differs(one, plan)]
    yield f"{_head(made, made.tasks, regret)}: {claim}.{''.join(warnings)}"
    yield from _lacking(made, asked)
    yield from (f"Nothing is said of {one.one} and {one.other}: {one.reason}." for one in pairs if one.reason)
    family = max(plan.family_size, len(made.tasks_of))
    most = max((one.mean.n for one in pairs if one.mean is not None), default=0)
    if most and (least := least_p(most) * family) > plan.error:
        yield (
            f"{counted(most, 'sampler stream')} (a task and a seed each) cannot show a difference in a family of "
            f"{counted(family, 'pair')}: the least p that they allow is {figure(min(1.0, least))}."
        )
    yield from (_control(one, question, plan) for one in controls)
    if _is_modelled(made, cells):
        yield "Modelled energy: p and interval are the widest over the plausible weights, the rest is at the default ones."
    failed = sum(run.has_failed for of in cells.values() for cell in of.values() for run in cell.runs)
    if failed:
        worst = "as the worst anchor in the IQM, and " if regret else ""
        yield (
            f"{counted(failed, 'run')} failed, and counts {worst}as the greatest difference of its pair in the mean. "
            "Who failed where the other did not is ahead only by signed ranks too."
        )
    yield f"The claim is over these {tasks} tasks alone: {_named(made.tasks)}."


def compared_by(made: AcrossTasks) -> Question:
    """Return the question as its differences over tasks are: of regret for quality."""
    question = made.question
    return replace(question, better="min", scale="difference", unit="regret") if made.is_regret else question


def _is_modelled(made: AcrossTasks, cells: Cells) -> bool:
    every = [cell for of in cells.values() for cell in of.values()]
    return any(is_modelled(cell, cell, made.question.metric) for cell in every)


def _head(made: AcrossTasks, tasks: Sequence[str], regret: bool) -> str:
    by = " by normalised regret on validation" if regret else " by paired differences"
    return f"{question_text(made.question)}, over these {counted(len(tasks), 'task')}, {scope_text(made.scope)},{by}"


def _claim(pairs: Sequence[OverTasks], question: Question, plan: Frozen) -> str:
    tested = [one for one in pairs if one.p is not None]
    if not tested:
        return "there are no two frameworks to compare"
    claims = [_sentence(one, question) for one in tested if (one.p or 0.0) <= plan.error]
    if claims:
        return "; ".join(claims)
    least = min(tested, key=lambda one: one.p or 0.0)
    difference = difference_text(least.mean if not any(least.failures) else None, question)
    return f"no pair is shown to differ (least p {figure(least.p or 0.0)}: {least.one} against {least.other} {difference})"


def _sentence(one: OverTasks, question: Question) -> str:
    """Return who is ahead, by how much, in how many of the tasks, and how sure that is."""
    is_one = one.mean is not None and (one.mean.estimate < 0) == (question.better == "min")
    first, second = (one.one, one.other) if is_one else (one.other, one.one)
    size = size_text(one.mean, question, is_one=is_one) if not any(one.failures) else ""
    wins = one.ahead[0 if is_one else 1]
    where = f"on average, and in {wins} of {counted(len(one.tasks), 'task')}"
    model = estimated(one) if one.is_estimated else ""
    notes = [f"p {figure(one.p or 0.0)}, sign flips", model, *failed_runs(one), one.disturbance.text, one.without_disturbed]
    return f"{first} is ahead of {second}{size} {where} ({', '.join(note for note in notes if note)})"


def _control(one: OverTasks, question: Question, plan: Frozen) -> str:
    warning = f". {_WARNING}, {_chance(plan)}" if _differs(one, plan) else ""
    difference = difference_text(one.mean if not any(one.failures) else None, question)
    return f"Control (A/A, in no family): {one.one} against {one.other} {difference} (p {figure(one.p or 0.0)}){warning}."


def _differs(control: OverTasks, plan: Frozen) -> bool:
    """Whether the interval of an A/A pair, which is at `confidence`, leaves out 0."""
    return control.p is not None and control.p <= plan.error


def _chance(plan: Frozen) -> str:
    return f"as one in {round(1 / plan.error)} does by chance"


def _lacking(made: AcrossTasks, asked: Sequence[str]) -> Iterator[str]:
    """Yield which tasks are in no pair, and which pairs lack some of the others."""
    left_out = [task for task in asked if task not in made.tasks]
    if left_out:
        yield f"{counted(len(left_out), 'task')} left out, because no two frameworks have a value there: {_named(left_out)}."
    few = [f"{one} and {other} in {len(found)}" for (one, other), found in made.tasks_of.items() if len(found) < len(made.tasks)]
    if few:
        iqm = " The IQM is over the tasks that all have." if made.is_regret else ""
        yield f"Pairs that have values in fewer tasks: {listed(few)}.{iqm}"


def _nothing(made: AcrossTasks, cells: Cells, plan: Frozen, regret: bool) -> str:
    if not cells:
        return "no framework is compared"
    if regret and not plan.anchors:
        return "the file has no anchors to normalise regret by (anchors: {random_search, best_known, source} of each task)"
    if regret:
        return "no task has anchors of its objective's metric and a run that is done, of two frameworks"
    return f"no task has a value of {made.question.metric} of two frameworks, both of one kind"


def _named(tasks: Sequence[str]) -> str:
    return ", ".join(tasks[:_MOST_NAMED]) + (f" and {len(tasks) - _MOST_NAMED} more" if len(tasks) > _MOST_NAMED else "")
