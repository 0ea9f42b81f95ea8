"""Groups with their estimates: medians and IQM over the seeds, failed runs as worse than any, the success rate beside."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from tuneoff.answers.cells import Cell
from tuneoff.answers.directions import better, default_unit, scale
from tuneoff.answers.model import Estimate, Group, Question
from tuneoff.answers.run_values import value
from tuneoff.stats import location
from tuneoff.stats.interval import Interval
from tuneoff.stats.proportion import wilson

TABLE = (  # what a table of frameworks shows beside the questions' metrics
    "quality.test",
    "quality.validation",
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
ONE_VALUE = "one value: it has no interval"


class _Locate(Protocol):
    def __call__(
        self, values: Sequence[float], confidence: float, *, grid_step: float = 0.0, key: tuple[str, ...] = ()
    ) -> Interval: ...


def group(cell: Cell, questions: Sequence[Question], units: Mapping[str, str], confidence: float, grid_step: float) -> Group:
    """Return a cell as a group; `grid_step` is of the objective's accuracy on the test split."""
    tried = sum(run.has_ended for run in cell.runs if run.ref.status != "skipped")
    done = sum(run.is_done for run in cell.runs if run.ref.status != "skipped")
    asked = {question.metric: question for question in questions}
    metrics = dict.fromkeys((*asked, *TABLE))
    return Group(
        label=cell.label,
        adapter=cell.spec.adapter,
        scope=cell.scope,
        emulated=cell.emulated,
        replicate=cell.spec.replicate,
        runs=tuple(run.ref for run in cell.runs),
        success=wilson(done, tried, confidence) if tried else None,
        estimates={metric: estimate(cell, metric, asked.get(metric), units, confidence, grid_step) for metric in metrics},
        same_as=cell.same_as,
    )


def estimate(
    cell: Cell, metric: str, question: Question | None, units: Mapping[str, str], confidence: float, grid_step: float = 0.0
) -> Estimate:
    """Return a metric over the runs of a cell; a run that failed counts as worse than any."""
    objective = cell.spec.experiment.objective
    direction = question.better if question is not None else better(metric, objective.metric, objective.mode)
    worst = math.inf if direction == "min" else -math.inf
    values = tuple(value(run, metric) for run in cell.runs)
    known = [one.value for one in values if one.value is not None]
    failures = sum(run.has_failed for run in cell.runs)
    numbers = [*known, *[worst] * failures] if known else []
    unit = question.unit if question is not None else units.get(metric, default_unit(metric, objective.metric))
    step = grid_step if metric == "quality.test" and scale(metric) == "difference" else 0.0
    key = (metric, cell.scope.text, cell.label)
    return Estimate(
        metric=metric,
        unit=unit,
        values=values,
        median=_interval(location.median, numbers, confidence, step, key),
        iqm=_interval(location.iqm, numbers, confidence, step, key),
        kinds=frozenset(one.kind for one in values if one.value is not None and one.kind is not None),
        reasons=dict(Counter(one.reason for one in values if one.reason is not None)),
    )


def _interval(
    locate: _Locate, numbers: Sequence[float], confidence: float, grid_step: float, key: tuple[str, ...]
) -> Interval | None:
    if not numbers:
        return None
    if len(numbers) == 1:
        return Interval(estimate=numbers[0], low=-math.inf, high=math.inf, confidence=confidence, n=1, method=ONE_VALUE)
    return locate(numbers, confidence, grid_step=grid_step, key=key)
