"""Trials and epochs against the budget, how trials ended, who is charged, and how long they ran."""

from __future__ import annotations

import statistics

from tuneoff.measure.segments import busy_ns
from tuneoff.record.metric_value import MetricValue, known, milliseconds, missing
from tuneoff.record.run_record import RunRecord

STATES = ("completed", "pruned", "failed", "cancelled", "timed_out")
CHARGES = ("framework", "workload", "infrastructure", "user")


def budget_metrics(run: RunRecord) -> dict[str, MetricValue]:
    """Return counts of trials and epochs, shares of the budget in %, and busy time per trial in ms.

    A trial is one budget ticket: attempts are segments of one trial. Trials that never took a ticket (submitted, but
    never started) count as submitted only.
    """
    budget = run.run_spec().experiment.budget
    used = [trial for trial in run.trials if trial.used_ticket]
    epochs = sum(trial.epochs_trained for trial in run.trials)
    values = {
        "trials.submitted": _count(len(run.trials) + len({refusal.trial for refusal in run.refusals})),
        "trials.used": _count(len(used)),
        "trials.never_started": _count(len(run.trials) - len(used)),
        "trials.refused": _count(len(run.refusals)),
        "trials.retries": _count(sum(max(0, len(trial.attempts) - 1) for trial in run.trials)),
        "trials.distinct_configurations": _count(len({trial.digest for trial in used})),
        "trials.of_budget": known(100 * len(used) / budget.trials, "%"),
        "epochs.trained": _count(epochs),
        "epochs.of_budget": (
            known(100 * epochs / budget.epochs_total, "%")
            if budget.epochs_total is not None
            else known(100 * epochs / (budget.trials * budget.epochs_per_trial), "%")
        ),
    }
    for state in STATES:
        values[f"trials.{state}"] = _count(sum(trial.state == state for trial in used))
    failed = [trial for trial in run.trials if trial.state in ("failed", "timed_out")]
    for charge in CHARGES:
        values[f"failures.{charge}"] = _count(sum(trial.charged == charge for trial in failed))
    values["trials.failed_before_start"] = _count(sum(not trial.used_ticket for trial in failed))
    values.update(_execution_times(run))
    return values


def _execution_times(run: RunRecord) -> dict[str, MetricValue]:
    """Return the busy time per trial, all its attempts together."""
    times = [sum(busy_ns(attempt) for attempt in trial.attempts) for trial in run.trials if trial.used_ticket]
    none = "no trial started"
    values = {}
    for name, pick in (("mean", statistics.fmean), ("median", statistics.median), ("min", min), ("max", max)):
        picked = round(pick(times)) if times else None
        values[f"trial_execution.{name}"] = milliseconds(picked, none, n_samples=len(times))
    span = [attempt.submitted_ns for trial in run.trials for attempt in trial.attempts if attempt.submitted_ns is not None]
    ends = [attempt.ended_ns for trial in run.trials for attempt in trial.attempts if attempt.ended_ns is not None]
    seconds = (max(ends) - min(span)) / 1e9 if span and ends else 0.0
    values["trials.per_second"] = known(len(times) / seconds, "1/s") if seconds > 0 and times else missing("1/s", none)
    return values


def _count(number: int) -> MetricValue:
    return known(number, "count", kind="measured")
