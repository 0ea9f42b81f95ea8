"""Wasted time: sets of busy segments that did not lead to the selected model. Energy and cost read the same segments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from tuneoff.metrics.incumbent import goal_reached
from tuneoff.metrics.overhead import stop_due_ns
from tuneoff.metrics.segments import Interval, busy
from tuneoff.metrics.values import MetricValue, known, milliseconds, missing
from tuneoff.records.model import AttemptRecord, RunRecord, TrialRecord

Policy = Literal["strict", "default", "non_best", "post_goal"]
POLICIES: tuple[Policy, ...] = ("strict", "default", "non_best", "post_goal")
FAULTS = ("failed", "cancelled", "timed_out", "superseded")


def wasted_segments(run: RunRecord, policy: Policy) -> Iterator[tuple[AttemptRecord, Interval]]:
    """Yield the busy segments of a policy with their attempts.

    strict: attempts that failed, were cancelled, timed out or were replaced by a retry, and all work after a stop was
    due, also when the stop never came. default: strict and the rest of the pruned trials. non_best: default and every
    other trial but the selected one. post_goal: all work after the goal was met. What led to the selected checkpoint
    is in no set.

    Raises:
        ValueError: `post_goal` without a goal that was met.
    """
    goal_ns: int | None = None
    if policy == "post_goal":
        goal = goal_reached(run)
        if goal is None:
            raise ValueError("`post_goal` needs a goal that was met, but there is none")
        goal_ns = goal.at_ns
    selected = run.best.trial if run.best is not None else None
    for trial in run.trials:
        for attempt in trial.attempts:
            if trial.trial == selected and attempt is trial.attempts[-1]:
                after = max(_kept_ns(trial), goal_ns if goal_ns is not None else _stop_or_end_ns(trial, attempt))
            else:
                after = goal_ns if goal_ns is not None else _wasted_after_ns(trial, attempt, policy)
            if attempt.ended_ns is not None and attempt.ended_ns <= after:
                continue  # most attempts of most policies: their pieces need not be made
            for start, end in busy(attempt):
                if end > after:
                    yield attempt, (max(start, after), end)


def _wasted_after_ns(trial: TrialRecord, attempt: AttemptRecord, policy: Policy) -> int:
    """Return from when on the busy time of an attempt that was not selected is wasted."""
    is_all = attempt.state in FAULTS or policy == "non_best" or (policy == "default" and attempt.state == "pruned")
    return (attempt.started_ns or 0) if is_all else _stop_or_end_ns(trial, attempt)


def _stop_or_end_ns(trial: TrialRecord, attempt: AttemptRecord) -> int:
    """Return when a stop of the attempt was due, else its end."""
    due = stop_due_ns(trial) if attempt is trial.attempts[-1] else None
    return due if due is not None else attempt.ended_ns or 0


def _kept_ns(trial: TrialRecord) -> int:
    """Return until when the selected trial's work led to its checkpoint."""
    return next((epoch.ended_ns for epoch in trial.attempts[-1].epochs if epoch.epoch == trial.value_epoch), 0)


def waste_metrics(run: RunRecord) -> dict[str, MetricValue]:
    """Return wasted time per policy: ms, and core-ms (times vCPU of a slot)."""
    experiment = run.run_spec().experiment
    values: dict[str, MetricValue] = {}
    for policy in POLICIES:
        if policy == "post_goal" and goal_reached(run) is None:
            reason = "no goal" if experiment.objective.threshold is None else "the goal was not met"
            values["waste.post_goal.time"] = missing("ms", reason)
            values["waste.post_goal.core_time"] = missing("core-ms", reason)
            continue
        wasted = sum(end - start for _, (start, end) in wasted_segments(run, policy))
        values[f"waste.{policy}.time"] = milliseconds(wasted, "")
        values[f"waste.{policy}.core_time"] = known(wasted * experiment.workers.cpus / 1e6, "core-ms")
    return values
