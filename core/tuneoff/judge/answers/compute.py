"""All answers of a results folder; its groups have medians over the seeds, failed runs as worse than any."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace

from tuneoff.experiment.accounting.declared import Prices
from tuneoff.judge.answers.across import across_tasks
from tuneoff.judge.answers.analysis_plan import Frozen, frozen, overall
from tuneoff.judge.answers.answer import Answers, Estimate, EstimatedGroup, Question, Verdict
from tuneoff.judge.answers.claims import claims
from tuneoff.judge.answers.judging import Rules, is_elsewhere, pairs, verdict
from tuneoff.judge.answers.phrases import floor_size, is_decided, is_within_noise
from tuneoff.judge.answers.run_values import better, billing_step, bounds, default_unit, grid_step, units, value
from tuneoff.judge.conditions import conditions
from tuneoff.judge.results import Results
from tuneoff.judge.runs import Group, by_scope, grouped, noise_pairs
from tuneoff.judge.stats.location import Interval, median, wilson
from tuneoff.judge.summary_rows import failures, with_failures

TABLE = (  # what a table of frameworks shows beside the questions' metrics
    "quality.test",
    "quality.validation",
    "time.jct_without_test",
    "time.jct",
    "time.deploy",
    "time.setup",
    "time.trial",
    "time.result_collection",
    "time.test",
    "time.metric_collection",
    "time.undeploy",
    "overhead.per_trial",
    "overhead.process_start",
    "overhead.between",
    "overhead.dispatch",
    "overhead.report",
    "overhead.exit",
    "overhead.vacant",
    "overhead.job_start",
    "overhead.further_trial",
    "overhead.per_report",
    "overhead.reports",
    "energy.per_completed_trial_without_test",
    "epochs.trained",
    "trials.used",
    "energy.per_completed_trial",
    "energy.trial",
    "energy.job",
    "carbon.job_without_test",
    "carbon.job",
    "carbon.per_completed_trial",
    "cost.job_without_test",
    "cost.job",
    "cost.per_completed_trial_without_test",
    "cost.per_completed_trial",
    "waste.default.time",
    "waste.default.energy",
    "waste.default.cost",
    "slots.utilization",
    "slots.idle_share",
    "energy.idle_share",
    "trials.per_second",
    "trials.completed",
    "trials.failed",
    "trials.pruned",
    "memory.tree_peak_rss",
    "memory.driver_peak_rss",
    "stage.ask",
    "suite.cpu_share",
)


def group(
    cell: Group,
    questions: Sequence[Question],
    units: Mapping[str, str],
    confidence: float,
    grid_step: float,
    prices: Prices | None = None,
) -> EstimatedGroup:
    """Return a cell as a group; `grid_step` is of the accuracy on the test split, `prices` are those it is billed by."""
    tried = sum(run.has_ended for run in cell.own)
    asked = {question.metric: question for question in questions}
    metrics = dict.fromkeys((*asked, *TABLE))
    return EstimatedGroup(
        **{item.name: getattr(cell, item.name) for item in fields(Group)},
        success=wilson(len(cell.done), tried, confidence) if tried else None,
        estimates={metric: estimate(cell, metric, asked.get(metric), units, confidence, grid_step, prices) for metric in metrics},
        conditions=conditions(run.record for run in cell.runs if run.record is not None),
    )


def estimate(
    cell: Group,
    metric: str,
    question: Question | None,
    units: Mapping[str, str],
    confidence: float,
    grid_step: float = 0.0,
    prices: Prices | None = None,
) -> Estimate:
    """Return a metric over the runs of a cell; a run that failed counts as worse than any."""
    objective = cell.spec.experiment.objective
    direction = question.better if question is not None else better(metric, objective.metric, objective.mode)
    values = tuple(value(run, metric) for run in cell.runs)
    known = [one.value for one in values if one.value is not None]
    numbers = with_failures(known, failures(cell.runs), direction)
    unit = question.unit if question is not None else units.get(metric, default_unit(metric, objective.metric))
    step = grid_step if metric == "quality.test" else billing_step(cell, metric, prices)
    return Estimate(
        metric=metric,
        unit=unit,
        values=values,
        median=_median(numbers, bounds(metric, objective.metric), confidence, step),
        kinds=frozenset(one.kind for one in values if one.value is not None and one.kind is not None),
        reasons=dict(Counter(one.reason for one in values if one.reason is not None)),
    )


def _median(numbers: Sequence[float], limits: tuple[float, float], confidence: float, grid_step: float) -> Interval | None:
    """Return the median with its interval, cut off where the metric cannot be: at 0 for a time, at 0 and 1 for an accuracy.

    Limits that a value is beyond are none: an accuracy may be given in percent.
    """
    if not numbers:
        return None
    if not all(limits[0] <= number <= limits[1] for number in numbers if math.isfinite(number)):
        limits = -math.inf, math.inf
    found = median(numbers, confidence, grid_step=grid_step)
    low = found.low if found.n == 1 else min(found.estimate, max(found.low, limits[0]))
    high = found.high if found.n == 1 or math.isinf(found.high) else max(found.estimate, min(found.high, limits[1]))
    return replace(found, low=low, high=high)


def answers(results: Results) -> Answers:
    """Return what a results folder says, of a finished matrix or of one that is at work."""
    plan = frozen(results.plan.analysis)
    of_scope = by_scope(grouped(results))
    shown = {*plan.questions.values(), *TABLE}
    known = {scope: units((run for cell in cells for run in cell.runs), shown) for scope, cells in of_scope.items()}
    asked = {scope: plan.questions_of(cells[0].spec.experiment, known[scope]) for scope, cells in of_scope.items()}
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
            Rules(alpha=plan.error, confidence=plan.confidence, grid_step=steps[scope], prices=prices),
        )
    )
    made = Answers(
        name=results.plan.name,
        questions=overall(list(asked.values())),
        scopes=tuple(of_scope),
        groups=groups,
        verdicts=verdicts,
        across=tuple(across_tasks(of_scope, asked, plan, prices)),
        statuses=dict(Counter(run.status for own in of_scope.values() for one in own for run in one.runs)),
        family_size=plan.family_size,
        confidence=plan.confidence,
        analysis=results.plan.analysis,
    )
    return replace(made, claims=tuple(claims(made)))


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
