"""The incumbent: the best trial so far, a right-continuous step function. Plot it with steps, never interpolate it."""

from __future__ import annotations

import bisect
from dataclasses import dataclass

from tuneoff.base.identity import is_finite
from tuneoff.experiment.spec import Objective
from tuneoff.measure.spans import boundaries
from tuneoff.record.derive import best_trial
from tuneoff.record.metric_value import MetricValue, metric_value, metric_value_or, missing
from tuneoff.record.run_record import RunRecord, TestRecord

NO_TEST = "the workload offers no test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Improvement:
    """From here on `value` is the incumbent's: after so many seconds, begun trials and trained epochs."""

    at_ns: int  # since the run's start
    seconds: float  # since the first submission
    trials: int  # started by then, this one included
    epochs: int  # trained by then over all trials, this one included
    trial: str
    epoch: int
    value: float


def incumbents(run: RunRecord, objective: Objective | None = None) -> list[Improvement]:
    """Return the improvements of the incumbent in time.

    A value counts from the moment before its epoch's report. Only trials that ended complete count, by all their epochs
    of the last attempt: what a pruned or failed trial reached is not selectable, so the last value is the selected one.
    Trials and epochs of all attempts are counted on the axes. Empty if no trial completed.
    """
    objective = objective or run.run_spec().experiment.objective
    start = boundaries(run).first_submitted_ns or 0
    begun: list[int] = []
    trained: list[int] = []
    candidates: list[tuple[int, str, int, float]] = []
    for trial in run.trials:
        starts = [attempt.started_ns for attempt in trial.attempts if attempt.started_ns is not None]
        begun.extend([min(starts)] if starts else [])
        for attempt in trial.attempts:
            trained.extend(epoch.ended_ns for epoch in attempt.epochs if not epoch.restored)
        if trial.state != "completed":
            continue
        for epoch in trial.attempts[-1].epochs:
            value = epoch.metrics.get(objective.metric)
            if value is not None and is_finite(value):
                candidates.append((epoch.ended_ns, trial.trial, epoch.epoch, value))
    begun.sort()
    trained.sort()
    candidates.sort()
    improvements: list[Improvement] = []
    best: float | None = None
    for at, name, number, value in candidates:
        if objective.is_better(value, best):
            best = value
            improvements.append(
                Improvement(
                    at_ns=at,
                    seconds=(at - start) / 1e9,
                    trials=bisect.bisect_right(begun, at),
                    epochs=bisect.bisect_right(trained, at),
                    trial=name,
                    epoch=number,
                    value=value,
                )
            )
    return improvements


def goal_reached(run: RunRecord, goal: float | None = None) -> Improvement | None:
    """Return the improvement that met a goal first, the one given or the objective's; None without one, or if none met it."""
    objective = run.run_spec().experiment.objective
    if objective.goal is None:
        return None
    return next((step for step in incumbents(run, objective) if objective.is_met(step.value, goal)), None)


def quality_metrics(run: RunRecord) -> dict[str, MetricValue]:
    """Return the selected value, its test scores, the optimism, and what it took to meet the goal."""
    objective = run.run_spec().experiment.objective
    values: dict[str, MetricValue] = {}
    no_trial = "no trial completed with a finite value"
    chosen_id = run.best.trial if run.best is not None else None
    chosen = next((trial for trial in run.trials if trial.trial == chosen_id), None)
    computed = best_trial(objective, run.trials)
    validation = chosen.value if chosen is not None else None
    unnamed = no_trial if computed is None else "the framework named no best trial"
    values["quality.validation"] = metric_value_or(validation, objective.metric, unnamed, kind="measured")
    best = computed.value if computed is not None else None
    values["quality.validation_of_core_best"] = metric_value_or(best, objective.metric, no_trial, kind="measured")
    scores = _scores(run.test) if run.test is not None else {}
    values.update((f"test.{name}", score) for name, score in scores.items())
    same = test_counterpart(objective.metric, list(scores))
    reason = NO_TEST if run.test is not None else "the best trial was not tested"
    reason = reason if not scores else f"the test gives nothing comparable to {objective.metric}"
    test = scores[same] if same is not None else missing(objective.metric, reason)
    values["quality.test"] = test
    sign = 1 if objective.mode == "max" else -1
    values["quality.optimism"] = (
        metric_value(sign * (validation - test.value) + 0.0, objective.metric, n_samples=1)
        if validation is not None and test.value is not None
        else missing(objective.metric, test.reason_if_null or no_trial if validation is not None else no_trial)
    )
    goal = goal_reached(run)
    reason = "the objective has no goal" if objective.goal is None else "the goal was not met"
    for axis, unit in (("seconds", "s"), ("trials", "count"), ("epochs", "count")):
        values[f"goal.{axis}"] = metric_value_or(getattr(goal, axis) if goal is not None else None, unit, reason)
    for name, value in objective.goals.items():
        met = goal_reached(run, value)
        values[f"goal.{name}.seconds"] = metric_value_or(met.seconds if met is not None else None, "s", "the goal was not met")
    return values


def test_counterpart(metric: str, scores: list[str]) -> str | None:
    """Return the test score that means the same as a validation metric: of that name, or with `test_` for `validation_`."""
    bare = metric.removeprefix("validation_").removeprefix("val_")
    return next((name for name in (f"test_{bare}", metric, bare) if name in scores), None)


test_counterpart.__test__ = False  # type: ignore[attr-defined]  # no test for pytest


def _scores(test: TestRecord) -> dict[str, MetricValue]:
    odd = test.non_finite or {}
    return {
        name: metric_value_or(score, name, f"the test gave {odd.get(name, 'no finite number')}", kind="measured", source="test")
        for name, score in test.scores.items()
    }
