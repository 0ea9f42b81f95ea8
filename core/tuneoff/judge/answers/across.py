"""What holds over the tasks of a file: claims about these tasks by paired differences, in words, and what describes them.

Each task has the same weight. A difference is of two runs of one task and seed: of logarithms on the ratio scale, of normalised
regret on validation for quality. Runs of one seed in tasks that change the same thing share their samplers' stream, so their
signs flip together. Of quality the interquartile mean of the regret describes too, and claims nothing.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from tuneoff.base.format import counted, figure, listed
from tuneoff.experiment.schema import AnchorsPart
from tuneoff.experiment.variants import TASK
from tuneoff.judge.answers.analysis_plan import Frozen
from tuneoff.judge.answers.answer import FAILS, HOLDS, UNCHECKED, AcrossTasks, OverTasks, Question
from tuneoff.judge.answers.judging import UNKNOWN, Measure, is_modelled, pair, weighted, weights_of
from tuneoff.judge.answers.phrases import difference_text, estimated, failed_runs, question_text, scope_text, size_text
from tuneoff.judge.groups import Group, log_billing_step, noise_pairs
from tuneoff.judge.runs import FEWEST_UNDISTURBED, Run, Scope, Value, disturbance, is_disturbed, is_of_objective, value
from tuneoff.judge.stats.location import Interval
from tuneoff.judge.stats.paired import judge
from tuneoff.judge.stats.sign_flip import SignFlip, least_p, sign_flip
from tuneoff.judge.stats.tasks import stratified_iqm

WORST = 1.0  # regret of the median of random search: what a failed run counts at least
VALIDATION = "quality.validation"
_MOST_NAMED = 12
_WARNING = "A framework named twice (A/A) should not differ from itself and does: distrust what is claimed here"
ByTask = Mapping[str, Group]
Cells = Mapping[str, ByTask]  # by label and task
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
            sign, of = (1.0 if question.better == "min" else -1.0), cell.estimate(question.metric)
            scores = [*(sign * one for one in of.known), *[math.inf] * of.failed]
        if any(math.isfinite(score) for score in scores) or (scores and _has_failed(cell)):
            found[task] = scores
    return found


def _has_failed(cell: Group) -> bool:
    """Whether every run failed: that is worse than any success, and not a task without the metric."""
    return all(run.has_failed for run in cell.runs if run.will_run)


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
    return len({kind for cell in cells for kind in cell.estimate(family.question.metric).kinds}) > 1


def _waiting(cells: Cells) -> str | None:
    """Return why no claim may be made yet: runs of a task have not ended.

    It is the rule of verdicts within a task: who claims whenever one more run has ended finds something in equal adapters too.
    """
    every = [cell for of in cells.values() for cell in of.values()]
    planned = sum(len(cell.by_seed) for cell in every)
    ended = sum(run.has_ended for cell in every for run in cell.by_seed.values())
    return None if ended == planned else f"{ended} of {counted(planned, 'planned run')} of these tasks have ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class _TaskDifference:
    """A paired difference: of which runs of which task, in which sampler stream."""

    task: str
    runs: tuple[Run, Run]
    stream: Hashable
    difference: float
    half_step: float  # how far it may be off, as time is billed in whole units


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskComparison:
    """How pairs are compared. `is_quality`: by the regret of each task's anchors."""

    question: Question
    plan: Frozen
    is_quality: bool

    def over(self, one: ByTask, other: ByTask, tasks: Sequence[str], family: int, *, is_noise: bool = False) -> OverTasks:
        """Return what the tasks say of two adapters; `family`: of how many pairs it is one."""
        names = next(iter(one.values())).label, next(iter(other.values())).label
        bare = OverTasks(one=names[0], other=names[1], tasks=tuple(tasks), is_noise=is_noise)
        error = self.plan.error
        rows, scale, reason = self._rows(one, other, tasks, None)
        if reason or not rows:
            return replace(bare, reason=reason or "no run of one can be compared with one of the other")
        found, weights = [rows], None
        if any(is_modelled(one[task], other[task], self.question.metric) for task in tasks):
            weights = weights_of(*(cells[task] for cells in (one, other) for task in tasks))
            for ratio in (weights.low, weights.high):
                again, _, reason = self._rows(one, other, tasks, weighted(ratio))
                if reason or len(again) < len(rows):
                    return replace(bare, reason=f"modelled: {UNKNOWN}")
                found.append(again)
        mean = self._flipped(found, [row.stream for row in rows], error / family, scale)
        return replace(
            bare,
            tasks=tuple(dict.fromkeys(row.task for row in rows)),
            disturbance=disturbance(run for row in rows for run in row.runs),
            weights=weights,
            is_estimated=any(value(run, self.question.metric).kind == "estimated" for row in rows for run in row.runs),
            without_disturbed=self._without_disturbed(found, mean, error / family, scale) if mean.p * family <= error else "",
            mean=mean.interval,
            p=min(1.0, mean.p * family),
            ahead=_ahead(rows, self.better),
            failures=(sum(row.runs[0].has_failed for row in rows), sum(row.runs[1].has_failed for row in rows)),
        )

    @property
    def better(self) -> str:
        return "min" if self.is_quality else self.question.better

    def _rows(
        self, one: ByTask, other: ByTask, tasks: Sequence[str], measure: Measure | None
    ) -> tuple[list[_TaskDifference], float, str | None]:
        """Return the differences, the greatest size of what was subtracted, and why none may be compared."""
        rows: list[_TaskDifference] = []
        scale = 0.0
        for task in tasks:
            ours, theirs = one[task], other[task]
            if self.is_quality:
                asked = replace(self.question, metric=VALIDATION, better="min", scale="difference")
                anchors = anchors_of(ours, self.plan)
                found = pair(ours, theirs, asked, _regret(anchors)) if anchors is not None else None
            else:
                found = pair(ours, theirs, self.question, measure or value)
            if found is None:
                continue
            if found.excluded is not None:
                return [], 0.0, f"{task}: {found.excluded}"
            scale = max(scale, found.scale)
            changes = ours.spec.experiment.task_digest
            half = log_billing_step((ours, theirs), self.question.metric) / 2
            runs = ours.by_seed, theirs.by_seed
            rows += [
                _TaskDifference(
                    task=task,
                    runs=(runs[0][row.seed], runs[1][row.seed]),
                    stream=(changes, row.seed),
                    difference=row.difference,
                    half_step=half,
                )
                for row in found.usable
                if row.difference is not None
            ]
        return rows, scale, None

    def _without_disturbed(
        self, found: Sequence[Sequence[_TaskDifference]], claimed: SignFlip, alpha: float, scale: float
    ) -> str:
        """Say whether a claim holds by the pairs that nobody disturbed, at the least error that so many units allow."""
        kept = [place for place, row in enumerate(found[0]) if all(is_disturbed(run) is False for run in row.runs)]
        if len(kept) == len(found[0]):
            return ""
        rest = [[rows[place] for place in kept] for rows in found]
        units = [row.stream for row in rest[0]]
        if len(set(units)) < FEWEST_UNDISTURBED:
            return UNCHECKED
        error = max(alpha, least_p(len(set(units))))
        again = self._flipped(rest, units, error, scale)
        return HOLDS if again.p <= error and again.interval.estimate * claimed.interval.estimate > 0 else FAILS

    def _flipped(
        self, found: Sequence[Sequence[_TaskDifference]], units: Sequence[Hashable], alpha: float, scale: float
    ) -> SignFlip:
        """Return the test of the first rows; what they are under other weights of a model only widens it."""
        weights = _weights(found[0])
        least = WORST if self.is_quality else 0.0
        half = sum(weight * row.half_step for weight, row in zip(weights, found[0], strict=True))
        tests = []
        for rows in found:
            values = [row.difference for row in rows]
            test = sign_flip(values, weights, units, alpha, least=least, rounding_scale=scale, half_step=half)
            tests.append(_by_ranks_too(test, values, alpha, scale))
        intervals = [one.interval for one in tests]
        low, high = min(one.low for one in intervals), max(one.high for one in intervals)
        estimates = [one.estimate for one in intervals]
        p = max(one.p for one in tests) if min(estimates) * max(estimates) > 0 or len(tests) == 1 else 1.0
        return SignFlip(interval=replace(intervals[0], low=low, high=high), p=p)


def _by_ranks_too(test: SignFlip, values: Sequence[float], alpha: float, scale: float) -> SignFlip:
    """Return what also holds with failures as worse than any value, where the one that is ahead failed and the other did not.

    In a mean a failure has a made-up size, which many small differences can outweigh.
    """
    ahead = test.interval.estimate
    if not any(math.isinf(value) and value * ahead < 0 for value in values):
        return test
    ranked = judge(values, margin=None, alpha=alpha, rounding_scale=scale)
    low, high = min(test.interval.low, ranked.interval.low), max(test.interval.high, ranked.interval.high)
    p = max(test.p, ranked.p) if ranked.interval.estimate * ahead > 0 else 1.0
    return SignFlip(interval=replace(test.interval, low=low, high=high, method=f"{test.interval.method}; {ranked.method}"), p=p)


def _weights(rows: Sequence[_TaskDifference]) -> list[float]:
    """Return the weights that give each task the same, however many of its seeds can be compared."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.task] = counts.get(row.task, 0) + 1
    return [1 / counts[row.task] / len(counts) for row in rows]


def _ahead(rows: Sequence[_TaskDifference], better: str) -> tuple[int, int]:
    """Return in how many tasks the mean of the differences is for the one, and in how many for the other."""
    sums: dict[str, float] = {}
    for row in rows:
        both = sums.get(row.task, 0.0), row.difference
        sums[row.task] = 0.0 if both[0] == -both[1] else sum(both)
    below, above = sum(one < 0 for one in sums.values()), sum(one > 0 for one in sums.values())
    return (below, above) if better == "min" else (above, below)


def _regret(anchors: AnchorsPart) -> Measure:
    def measure(run: Run, metric: str) -> Value:
        found = value(run, metric)
        return found if found.value is None else replace(found, value=normalised(found.value, anchors))

    return measure


def anchors_of(cell: Group, plan: Frozen) -> AnchorsPart | None:
    """Return the frozen anchors of a cell's task; None where there are none, or they are of another direction.

    With the best known value below random search (where great is better) the better adapter would have the greater regret.
    """
    found, objective = plan.anchors.get(cell.scope.task), cell.spec.experiment.objective
    is_usable = found is not None and (found.best_known > found.random_search) == (objective.mode == "max")
    return found if is_usable else None


def normalised(validation: float, anchors: AnchorsPart) -> float:
    """Return the regret of a validation value, for either direction of the metric: better than the best known is below 0."""
    return (anchors.best_known - validation) / (anchors.best_known - anchors.random_search)


def regrets(cell: Group, anchors: AnchorsPart) -> list[float]:
    """Return the regret of each run that ended; +inf for one that failed."""
    found = []
    for run in cell.runs:
        selected = value(run, VALIDATION).value
        if run.has_failed:
            found.append(math.inf)
        elif selected is not None:
            found.append(normalised(selected, anchors))
    return found


def bounded(regret: list[float]) -> list[float]:
    """Return regrets with a failure as the worst anchor, 1, or as the worst of the same runs where that is worse.

    So a failure is never better than a success, and another adapter changes nothing.
    """
    worst = max([1.0, *(one for one in regret if math.isfinite(one))])
    return [one if math.isfinite(one) else worst for one in regret]


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
