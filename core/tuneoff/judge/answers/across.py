"""What holds over the tasks of a file: claims about these tasks by paired differences, in words, and what describes them.

Each task has the same weight. A difference is of two runs of one task and seed: of logarithms on the ratio scale, of normalised
regret on validation for quality. Runs of one seed in tasks that change the same thing share their samplers' stream, so their
signs flip together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import NamedTuple

from tuneoff.base.format import counted, figure, listed
from tuneoff.experiment.schema import AnchorsPart
from tuneoff.experiment.variants import TASK
from tuneoff.judge.answers.analysis_plan import Frozen
from tuneoff.judge.answers.answer import FAILS, HOLDS, UNCHECKED, AcrossTasks, OverTasks, Question
from tuneoff.judge.answers.judging import UNKNOWN, Measure, is_modelled, pair, weighted, weights_of
from tuneoff.judge.answers.phrases import difference_text, estimated, failed_runs, question_text, scope_text, size_text
from tuneoff.judge.groups import Group, log_billing_step, noise_pairs
from tuneoff.judge.metrics import is_of_objective
from tuneoff.judge.results import FEWEST_UNDISTURBED, Run, Scope, disturbance, is_disturbed, value
from tuneoff.judge.stats.paired import judge
from tuneoff.judge.stats.sign_flip import SignFlip, least_p, sign_flip
from tuneoff.record.metric_value import MetricValue, metric_value

WORST = 1.0  # regret of the median of random search: what a failed run counts at least
VALIDATION = "quality.validation"
_MOST_NAMED = 12
_WARNING = "A framework named twice (A/A) differs from itself: distrust the claims here"
ByTask = Mapping[str, Group]
Groups = Mapping[str, ByTask]  # by label and task
Scores = dict[str, list[float]]  # by task, smaller is better, a failed run +inf


@dataclass(slots=True)
class _Condition:
    """The scopes that differ in their task alone."""

    scope: Scope
    questions: Sequence[Question]
    groups: dict[str, dict[str, Group]] = field(default_factory=dict)  # label -> task -> group
    tasks: list[str] = field(default_factory=list)
    noise: dict[tuple[str, str], list[tuple[Group, Group]]] = field(default_factory=dict)  # (again, first) by labels


def across_tasks(
    of_scope: Mapping[Scope, Sequence[Group]], questions: Mapping[Scope, Sequence[Question]], plan: Frozen
) -> Iterator[AcrossTasks]:
    """Yield each question over the tasks of the file, by sampler, pruner and variant; nothing for a file without tasks."""
    conditions: dict[str, _Condition] = {}
    for scope, groups in of_scope.items():
        if not scope.task:
            continue
        whole = replace(scope, task="", text=scope.text.removesuffix(f" {scope.task}"))
        condition = conditions.setdefault(groups[0].spec.scope_key(TASK), _Condition(whole, questions[scope]))
        condition.tasks.append(scope.task)
        for group in groups:
            if group.is_compared and group.spec.replicate == 0:
                condition.groups.setdefault(group.label, {})[scope.task] = group
        for again, first in noise_pairs(groups):
            condition.noise.setdefault((again.label, first.label), []).append((again, first))
    for index in range(len(plan.questions)):
        for condition in conditions.values():
            yield _across(condition, condition.questions[index], plan)


def _across(condition: _Condition, question: Question, plan: Frozen) -> AcrossTasks:
    waiting = _waiting(condition.groups)
    metrics = {group.spec.experiment.objective.metric for groups in condition.groups.values() for group in groups.values()}
    is_quality = bool(metrics) and all(is_of_objective(question.metric, metric) for metric in metrics)  # compared by regret
    comparison = TaskComparison(question=question, plan=plan, is_quality=is_quality)
    scores = {label: by_task for label, groups in condition.groups.items() if (by_task := comparison.scores(groups))}
    kinds = {
        label: {kind for group in by_task.values() for kind in group.estimate(question.metric).kinds}
        for label, by_task in condition.groups.items()
    }
    tasks_of = {
        (first, second): tuple(task for task in condition.tasks if task in scores[first] and task in scores[second])
        for first, second in combinations(scores, 2)
        if is_quality or len(kinds[first] | kinds[second]) < 2
    }
    tasks_of = {names: tasks for names, tasks in tasks_of.items() if tasks}
    tasks = tuple(task for task in condition.tasks if any(task in shared for shared in tasks_of.values()))
    across = AcrossTasks(
        question=question,
        scope=condition.scope,
        tasks=tasks,
        labels=tuple(scores) if tasks else (),
        compared=tuple(compared(condition.groups, tasks_of, comparison, condition.noise.values())) if waiting is None else (),
        tasks_of=tasks_of,
        is_regret=is_quality,
    )
    return replace(across, texts=tuple(texts(across, condition.tasks, condition.groups, plan, waiting)))


def compared(
    groups: Groups,
    tasks_of: Mapping[tuple[str, str], Sequence[str]],
    comparison: TaskComparison,
    noise: Iterable[Sequence[tuple[Group, Group]]] = (),
) -> Iterator[OverTasks]:
    """Yield what the tasks say of each pair, in a family that no other adapter changes, then of each A/A pair that has ended."""
    family = max(comparison.plan.family_size, len(tasks_of))
    for (label, other), tasks in tasks_of.items():
        yield comparison.over(groups[label], groups[other], tasks, family)
    for pairs in noise:
        again, first = ({pair[side].scope.task: pair[side] for pair in pairs} for side in (0, 1))
        if _waiting({"again": again, "first": first}) is None:
            yield comparison.over(again, first, list(again), 1, is_noise=True)


def _waiting(groups: Groups) -> str | None:
    """Return why no claim may be made yet: runs of a task have not ended.

    It is the rule of verdicts within a task: who claims whenever one more run has ended finds something in equal adapters too.
    """
    all_groups = [group for by_task in groups.values() for group in by_task.values()]
    planned = sum(len(group.by_seed) for group in all_groups)
    ended = sum(run.has_ended for group in all_groups for run in group.by_seed.values())
    return None if ended == planned else f"{ended} of {counted(planned, 'planned run')} of these tasks have ended"


class _TaskDifference(NamedTuple):
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

    def scores(self, groups: ByTask) -> Scores:
        """Return the scores of a label by task; a task without a value of any run is left out, one in which all failed is not."""
        by_task: Scores = {}
        for task, group in groups.items():
            if self.is_quality:
                anchors = anchors_of(group, self.plan)
                measure = _regret(anchors) if anchors is not None else None
                values = [math.inf if run.has_failed else measure(run, VALIDATION).value for run in group.runs] if measure else []
                scores = [regret for regret in values if regret is not None]
            else:
                sign, estimate = (1.0 if self.better == "min" else -1.0), group.estimate(self.question.metric)
                scores = [*(sign * amount for amount in estimate.present), *[math.inf] * estimate.failed]
            has_failed = all(run.has_failed for run in group.runs if run.will_run)
            if any(math.isfinite(score) for score in scores) or (scores and has_failed):
                by_task[task] = scores
        return by_task

    def over(self, groups: ByTask, others: ByTask, tasks: Sequence[str], family: int, *, is_noise: bool = False) -> OverTasks:
        """Return what the tasks say of two adapters; `family`: of how many pairs it is one."""
        names = next(iter(groups.values())).label, next(iter(others.values())).label
        bare = OverTasks(one=names[0], other=names[1], tasks=tuple(tasks), is_noise=is_noise)
        error = self.plan.error
        rows, scale, reason = self._rows(groups, others, tasks, None)
        if reason or not rows:
            return replace(bare, reason=reason or "they have no comparable runs")
        rows_by_weight, weights = [rows], None
        if any(is_modelled(groups[task], others[task], self.question.metric) for task in tasks):
            weights = weights_of(*(by_task[task] for by_task in (groups, others) for task in tasks))
            for ratio in (weights.low, weights.high):
                reweighted, _, reason = self._rows(groups, others, tasks, weighted(ratio))
                if reason or len(reweighted) < len(rows):
                    return replace(bare, reason=f"modelled: {UNKNOWN}")
                rows_by_weight.append(reweighted)
        mean = self._flipped(rows_by_weight, error / family, scale)
        without_disturbed = ""
        kept = [index for index, row in enumerate(rows) if all(is_disturbed(run) is False for run in row.runs)]
        if mean.p * family <= error and len(kept) < len(rows):
            # Does the claim hold by the undisturbed pairs, at the smallest error that so many units allow?
            rest = [[weighted_rows[index] for index in kept] for weighted_rows in rows_by_weight]
            without_disturbed, units = UNCHECKED, len({row.stream for row in rest[0]})
            if units >= FEWEST_UNDISTURBED:
                alpha = max(error / family, least_p(units))
                again = self._flipped(rest, alpha, scale)
                holds = again.p <= alpha and again.interval.estimate * mean.interval.estimate > 0
                without_disturbed = HOLDS if holds else FAILS

        # In how many tasks is the mean of the differences for the one, and in how many for the other?
        sums: dict[str, float] = {}
        for row in rows:
            both = sums.get(row.task, 0.0), row.difference
            sums[row.task] = 0.0 if both[0] == -both[1] else sum(both)
        below, above = sum(total < 0 for total in sums.values()), sum(total > 0 for total in sums.values())
        return replace(
            bare,
            tasks=tuple(dict.fromkeys(row.task for row in rows)),
            disturbance=disturbance(run for row in rows for run in row.runs),
            weights=weights,
            is_estimated=any(value(run, self.question.metric).kind == "estimated" for row in rows for run in row.runs),
            without_disturbed=without_disturbed,
            mean=mean.interval,
            p=min(1.0, mean.p * family),
            ahead=(below, above) if self.better == "min" else (above, below),
            failures=(sum(row.runs[0].has_failed for row in rows), sum(row.runs[1].has_failed for row in rows)),
        )

    @property
    def better(self) -> str:
        return "min" if self.is_quality else self.question.better

    def _rows(
        self, groups: ByTask, others: ByTask, tasks: Sequence[str], measure: Measure | None
    ) -> tuple[list[_TaskDifference], float, str | None]:
        """Return the differences, the greatest size of what was subtracted, and why none may be compared."""
        rows: list[_TaskDifference] = []
        scale = 0.0
        for task in tasks:
            group, other = groups[task], others[task]
            if self.is_quality:
                by_regret = replace(self.question, metric=VALIDATION, better="min", scale="difference")
                anchors = anchors_of(group, self.plan)
                differences = pair(group, other, by_regret, _regret(anchors)) if anchors is not None else None
            else:
                differences = pair(group, other, self.question, measure or value)
            if differences is None:
                continue
            if differences.excluded is not None:
                return [], 0.0, f"{task}: {differences.excluded}"
            scale = max(scale, differences.scale)
            changes = group.spec.experiment.task_digest
            half = log_billing_step((group, other), self.question.metric) / 2
            runs = group.by_seed, other.by_seed
            rows += [
                _TaskDifference(
                    task=task,
                    runs=(runs[0][row.seed], runs[1][row.seed]),
                    stream=(changes, row.seed),
                    difference=row.difference,
                    half_step=half,
                )
                for row in differences.usable
                if row.difference is not None
            ]
        return rows, scale, None

    def _flipped(self, rows_by_weight: Sequence[Sequence[_TaskDifference]], alpha: float, scale: float) -> SignFlip:
        """Return the test of the first rows; what they are under other weights of a model only widens it."""
        counts = Counter(row.task for row in rows_by_weight[0])
        weights = [1 / counts[row.task] / len(counts) for row in rows_by_weight[0]]  # each task has the same
        units = [row.stream for row in rows_by_weight[0]]
        least = WORST if self.is_quality else 0.0
        half = sum(weight * row.half_step for weight, row in zip(weights, rows_by_weight[0], strict=True))
        tests = []
        for rows in rows_by_weight:
            values = [row.difference for row in rows]
            test = sign_flip(values, weights, units, alpha, least=least, rounding_scale=scale, half_step=half)
            if any(math.isinf(value) and value * test.interval.estimate < 0 for value in values):
                # The one that is ahead failed where the other did not: in a mean a failure has an assumed size, which many small
                # differences can outweigh. So it also has to hold with failures as worse than any value.
                ranked = judge(values, margin=None, alpha=alpha, rounding_scale=scale)
                p = max(test.p, ranked.p) if ranked.interval.estimate * test.interval.estimate > 0 else 1.0
                wider = replace(
                    test.interval,
                    low=min(test.interval.low, ranked.interval.low),
                    high=max(test.interval.high, ranked.interval.high),
                    method=f"{test.interval.method}; {ranked.interval.method}",
                )
                test = SignFlip(interval=wider, p=p)
            tests.append(test)
        intervals = [test.interval for test in tests]
        low, high = min(interval.low for interval in intervals), max(interval.high for interval in intervals)
        estimates = [interval.estimate for interval in intervals]
        p = max(test.p for test in tests) if min(estimates) * max(estimates) > 0 or len(tests) == 1 else 1.0
        return SignFlip(interval=replace(intervals[0], low=low, high=high), p=p)


def _regret(anchors: AnchorsPart) -> Measure:
    def measure(run: Run, metric: str) -> MetricValue:
        result = value(run, metric)
        if result.value is None:
            return result
        return metric_value(normalised(result.value, anchors), result.unit, kind=result.kind)  # it may overflow

    return measure


def anchors_of(group: Group, plan: Frozen) -> AnchorsPart | None:
    """Return the frozen anchors of a group's task; None where there are none, or they are of another direction.

    With the best known value below random search (where great is better) the better adapter would have the greater regret.
    """
    anchors, objective = plan.anchors.get(group.scope.task), group.spec.experiment.objective
    is_usable = anchors is not None and (anchors.best_known > anchors.random_search) == (objective.mode == "max")
    return anchors if is_usable else None


def normalised(validation: float, anchors: AnchorsPart) -> float:
    """Return the regret of a validation value, for either direction of the metric: better than the best known is below 0."""
    return (anchors.best_known - validation) / (anchors.best_known - anchors.random_search)


def texts(
    across: AcrossTasks, all_tasks: Sequence[str], groups: Groups, plan: Frozen, waiting: str | None = None
) -> Iterator[str]:
    """Yield what is said of it, the claim first. `all_tasks`: with those without a value; `waiting`: why nothing is claimed."""
    if not across.tasks:
        yield f"{_head(across, all_tasks)}: no claim is possible: {_nothing(across, groups, plan)}."
        return
    question = compared_by(across)
    pairs = [pair for pair in across.compared if not pair.is_noise]
    claim = _claim(pairs, question, plan) if waiting is None else f"no claim yet: {waiting}"
    controls = [control for control in across.compared if control.is_noise and control.mean is not None]
    warnings = [
        f" {_WARNING}: {control.one} against {control.other}, {_chance(plan)}." for control in controls if _differs(control, plan)
    ]
    yield f"{_head(across, across.tasks)}: {claim}.{''.join(warnings)}"
    yield from _lacking(across, all_tasks)
    yield from (f"No claim on {pair.one} and {pair.other}: {pair.reason}." for pair in pairs if pair.reason)
    family = max(plan.family_size, len(across.tasks_of))
    most = max((pair.mean.n for pair in pairs if pair.mean is not None), default=0)
    if most and (least := least_p(most) * family) > plan.error:
        yield (
            f"{counted(most, 'sampler stream')} (a task and a seed each) cannot show a difference in a family of "
            f"{counted(family, 'pair')}: the smallest possible p is {figure(min(1.0, least))}."
        )
    for control in controls:
        difference = difference_text(control.mean if not any(control.failures) else None, question)
        warning = f". {_WARNING}, {_chance(plan)}" if _differs(control, plan) else ""
        p = f"p {figure(control.p or 0.0)}"
        yield f"Control (A/A, in no family): {control.one} against {control.other} {difference} ({p}){warning}."
    if any(is_modelled(group, group, across.question.metric) for by_task in groups.values() for group in by_task.values()):
        yield "Modelled energy: p and interval are the widest over the plausible weights; the rest uses the default ones."
    failed = sum(run.has_failed for by_task in groups.values() for group in by_task.values() for run in group.runs)
    if failed:
        yield (
            f"{counted(failed, 'run')} failed: each counts as the largest difference of its pair in the mean. "
            "A framework that failed where the other did not is ahead only if signed ranks agree."
        )
    yield f"The claim covers only these {len(across.tasks)} tasks: {_named(across.tasks)}."


def compared_by(across: AcrossTasks) -> Question:
    """Return the question as its differences over tasks are: of regret for quality."""
    question = across.question
    return replace(question, better="min", scale="difference", unit="regret") if across.is_regret else question


def _head(across: AcrossTasks, tasks: Sequence[str]) -> str:
    by = " by normalised regret on validation" if across.is_regret else " by paired differences"
    return f"{question_text(across.question)}, over these {counted(len(tasks), 'task')}, {scope_text(across.scope)},{by}"


def _claim(pairs: Sequence[OverTasks], question: Question, plan: Frozen) -> str:
    tested = [pair for pair in pairs if pair.p is not None]
    if not tested:
        return "no two frameworks to compare"
    claims = []
    for claimed in tested:
        if (claimed.p or 0.0) > plan.error:
            continue
        is_first = claimed.mean is not None and (claimed.mean.estimate < 0) == (question.better == "min")
        first, second = (claimed.one, claimed.other) if is_first else (claimed.other, claimed.one)
        size = size_text(claimed.mean, question, is_first=is_first) if not any(claimed.failures) else ""
        wins = claimed.ahead[0 if is_first else 1]
        where = f"on average, and in {wins} of {counted(len(claimed.tasks), 'task')}"
        model = estimated(claimed) if claimed.is_estimated else ""
        p = f"p {figure(claimed.p or 0.0)}, sign flips"
        notes = filter(None, (p, model, *failed_runs(claimed), claimed.disturbance.text, claimed.without_disturbed))
        claims.append(f"{first} is ahead of {second}{size} {where} ({', '.join(notes)})")
    if claims:
        return "; ".join(claims)
    least = min(tested, key=lambda pair: pair.p or 0.0)
    difference = difference_text(least.mean if not any(least.failures) else None, question)
    return f"no pair is shown to differ (smallest p {figure(least.p or 0.0)}: {least.one} against {least.other} {difference})"


def _differs(control: OverTasks, plan: Frozen) -> bool:
    """Whether the interval of an A/A pair, which is at `confidence`, leaves out 0."""
    return control.p is not None and control.p <= plan.error


def _chance(plan: Frozen) -> str:
    return f"as one in {round(1 / plan.error)} does by chance"


def _lacking(across: AcrossTasks, all_tasks: Sequence[str]) -> Iterator[str]:
    """Yield which tasks are in no pair, and which pairs lack some of the others."""
    left_out = [task for task in all_tasks if task not in across.tasks]
    if left_out:
        yield f"{counted(len(left_out), 'task')} left out, as no two frameworks have a value there: {_named(left_out)}."
    incomplete = [
        f"{label} and {other} in {len(tasks)}"
        for (label, other), tasks in across.tasks_of.items()
        if len(tasks) < len(across.tasks)
    ]
    if incomplete:
        yield f"Pairs that have values in fewer tasks: {listed(incomplete)}."


def _nothing(across: AcrossTasks, groups: Groups, plan: Frozen) -> str:
    if not groups:
        return "no framework is compared"
    if across.is_regret and not plan.anchors:
        return "the file has no anchors to normalise regret by (anchors: {random_search, best_known, source} of each task)"
    if across.is_regret:
        return "no task has anchors of its objective's metric and a done run of two frameworks"
    return f"no task has a value of {across.question.metric} of the same kind from two frameworks"


def _named(tasks: Sequence[str]) -> str:
    return ", ".join(tasks[:_MOST_NAMED]) + (f" and {len(tasks) - _MOST_NAMED} more" if len(tasks) > _MOST_NAMED else "")
