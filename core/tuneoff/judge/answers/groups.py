"""Groups with their estimates: medians over the seeds, failed runs as worse than any, the success rate beside."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tuneoff.experiment.accounting.declared import Prices
from tuneoff.judge.answers.answer import Estimate, EstimatedGroup, Question
from tuneoff.judge.answers.directions import better, bounds, default_unit
from tuneoff.judge.answers.resolution import billing_step
from tuneoff.judge.answers.run_values import value
from tuneoff.judge.conditions import conditions
from tuneoff.judge.estimates import failures, with_failures
from tuneoff.judge.runs import Group
from tuneoff.judge.stats.location import Interval, median, wilson

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
    "energy.per_completed_trial",
    "energy.trial",
    "energy.job",
    "carbon.job",
    "carbon.per_completed_trial",
    "cost.job",
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
    tried = sum(run.has_ended for run in cell.runs if run.ref.status != "skipped")
    done = sum(run.is_done for run in cell.runs if run.ref.status != "skipped")
    asked = {question.metric: question for question in questions}
    metrics = dict.fromkeys((*asked, *TABLE))
    return EstimatedGroup(
        label=cell.label,
        adapter=cell.spec.adapter,
        scope=cell.scope,
        emulated=cell.emulated,
        replicate=cell.spec.replicate,
        runs=tuple(run.ref for run in cell.runs),
        success=wilson(done, tried, confidence) if tried else None,
        estimates={metric: estimate(cell, metric, asked.get(metric), units, confidence, grid_step, prices) for metric in metrics},
        same_as=cell.same_as,
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
