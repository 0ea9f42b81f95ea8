"""Wasted time: busy segments that did not lead to the selected model, its energy and cost; and what pruning saved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from tuneoff.base.format import counted
from tuneoff.measure.attribution.account import EnergyAccount
from tuneoff.measure.attribution.pieces import JOULES_PER_KWH, joules
from tuneoff.measure.incumbent import goal_reached
from tuneoff.measure.overhead import stop_due_ns
from tuneoff.measure.spans import AttemptKey, Interval, busy, length, started_attempts
from tuneoff.record.metric_value import Grounds, MetricValue, metric_value, metric_value_or, milliseconds, missing
from tuneoff.record.run_record import AttemptRecord, FlagRecord, RunRecord, TrialRecord
from tuneoff.record.samples.reader import Evidence

SAVED_BY = "epochs not run times the trial's own mean epoch"
NO_MEAN_EPOCH = "a trial was stopped before its first epoch, so its mean epoch is not known"
Policy = Literal["default", "post_goal"]
POLICIES: tuple[Policy, ...] = ("default", "post_goal")
FOREVER = 1 << 62
FAULTS = ("failed", "cancelled", "timed_out", "superseded")
LOWER_BOUND_FLAG = "waste_lower_bound"


def wasted_segments(run: RunRecord, policy: Policy) -> Iterator[tuple[AttemptRecord, Interval]]:
    """Yield the busy segments of a policy with their attempts: see `wasted_attempts`.

    Raises:
        ValueError: `post_goal` without a goal that was met.
    """
    for _, attempt, after in wasted_attempts(run, policy):
        for start, end in busy(attempt):
            if end > after:
                yield attempt, (max(start, after), end)


def wasted_attempts(run: RunRecord, policy: Policy) -> Iterator[tuple[AttemptKey, AttemptRecord, int]]:
    """Yield the attempts of a policy with the moment (ns since the run's start) from which all their busy time is wasted.

    default: attempts that failed, were cancelled, timed out or were replaced by a retry, and trials that were stopped, or should
    have been; of the selected one what came after its stop was due. post_goal: all work after the goal was met. What led to the
    selected checkpoint is in neither. What an attempt restored from a checkpoint is charged where the attempts before trained it,
    and is wasted only if all of that attempt is.

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
        for index, attempt in enumerate(trial.attempts):
            last = trial.attempts[-1]
            if trial.trial == selected and attempt is last:
                due_ns = goal_ns if goal_ns is not None else stop_due_ns(trial)
                epochs = attempt.epochs  # its work led to its checkpoint until
                kept_ns = next((epoch.ended_ns for epoch in epochs if epoch.epoch == trial.value_epoch), 0)
                after = max(kept_ns, due_ns if due_ns is not None else attempt.ended_ns or 0)
            else:
                after = goal_ns if goal_ns is not None else _wasted_after_ns(trial, attempt)
                if attempt is not last:
                    is_used = goal_ns is None and _wasted_after_ns(trial, last) > (last.started_ns or 0)
                    if trial.trial == selected or is_used:
                        after = max(after, _restored_ns(trial, index))
            if attempt.started_ns is not None and attempt.ended_ns is not None and attempt.ended_ns > after:
                yield (trial.trial, index), attempt, after  # most attempts are none


def _wasted_after_ns(trial: TrialRecord, attempt: AttemptRecord) -> int:
    """Return from when on the busy time of an attempt that was not selected is wasted: its start or its end."""
    is_stopped = attempt.state == "pruned" or (trial.stop_epoch is not None and attempt is trial.attempts[-1])
    return (attempt.started_ns if attempt.state in FAULTS or is_stopped else attempt.ended_ns) or 0


def _restored_ns(trial: TrialRecord, index: int) -> int:
    """Return until when an attempt trained what all attempts after it restored; its start where that is nothing."""
    attempt, last = trial.attempts[index], trial.attempts[-1]
    later = [
        later_attempt for later_attempt in trial.attempts[index + 1 :] if later_attempt is last or later_attempt.epochs_trained
    ]  # others left the checkpoint as it was
    restored = min(len(later_attempt.epochs) - later_attempt.epochs_trained for later_attempt in later)
    if trial.stop_epoch is not None:
        restored = min(restored, trial.stop_epoch)
    ends = (epoch.ended_ns for epoch in attempt.epochs if epoch.epoch <= restored and not epoch.restored)
    return max(ends, default=attempt.started_ns or 0)


def waste_metrics(run: RunRecord) -> dict[str, MetricValue]:
    """Return wasted time per policy: ms, and core-ms (times vCPU of a slot)."""
    experiment = run.run_spec().experiment
    values: dict[str, MetricValue] = {}
    for policy in POLICIES:
        reason = no_goal(run) if policy == "post_goal" else None
        if reason is not None:
            values["waste.post_goal.time"] = missing("ms", reason)
            values["waste.post_goal.core_time"] = missing("core-ms", reason)
            continue
        wasted = sum(end - start for _, (start, end) in wasted_segments(run, policy))
        values[f"waste.{policy}.time"] = milliseconds(wasted, "")
        values[f"waste.{policy}.core_time"] = metric_value(wasted * experiment.workers.cpus / 1e6, "core-ms")
        if policy == "post_goal" and experiment.objective.stop:
            goal = goal_reached(run)  # its own trial ends a moment later
            trials = {
                trial
                for (trial, _), attempt, _ in wasted_attempts(run, policy)
                if goal is None or trial != goal.trial or any(epoch.ended_ns > goal.at_ns for epoch in attempt.epochs)
            }
            values["waste.post_goal.trials"] = metric_value(len(trials), "count")
    return values


def lower_bound(run: RunRecord) -> FlagRecord | None:
    """Return the flag of waste that is a lower bound: attempts died with the whole run, and count up to their last event."""
    ends = sum(attempt.ended_by == "derivation" and attempt.state in FAULTS for _, attempt in started_attempts(run))
    unseen = f"{counted(ends, 'attempt')} ended unseen and {'counts' if ends == 1 else 'count'} up to the last event"
    return FlagRecord(name=LOWER_BOUND_FLAG, text=f"waste is a lower bound: {unseen}", count=ends) if ends else None


def no_goal(run: RunRecord) -> str | None:
    """Return why there is no waste after the goal; None where the goal was met."""
    if goal_reached(run) is not None:
        return None
    return "no goal" if run.run_spec().experiment.objective.goal is None else "the goal was not met"


def waste_energy_metrics(run: RunRecord, evidence: Evidence, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return wasted energy (kWh) per policy, from the same segments. A pure function."""
    values: dict[str, MetricValue] = {}
    for policy in POLICIES:
        reason = account.reason or (no_goal(run) if policy == "post_goal" else None)
        wasted = list(wasted_attempts(run, policy)) if reason is None else []
        if reason is None and any(key not in account.attempts for key, _, _ in wasted):
            reason, wasted = account.reasons.get("trials", "the energy of an attempt is not known"), []
        total = sum(joules(account.attempts[key], (after, FOREVER)) for key, _, after in wasted)
        values[f"waste.{policy}.energy"] = account.value(total / JOULES_PER_KWH, "kWh", reason)
    return values


def pruning_metrics(run: RunRecord, evidence: Evidence, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return the epochs (count), busy time (ms) and energy (kWh) that pruning saved. A pure function.

    Per pruned trial: the planned epochs that its last attempt did not run, times the mean busy time or energy of those that
    it did (the last one that trained any), its loading left out. Nothing was saved where nothing was pruned.
    """
    planned = run.run_spec().experiment.budget.epochs_per_trial
    pruned = [trial for trial in run.trials if trial.state == "pruned" and trial.used_ticket]
    epochs, time_ns, energy = 0, 0.0, 0.0
    no_mean = unknown = ""
    for trial in pruned:
        attempts = trial.attempts
        index = next((at for at in reversed(range(len(attempts))) if attempts[at].epochs_trained), len(attempts) - 1)
        # how far the last attempt got, or, where it ended among what it restored, the one that trained furthest
        last = attempts[-1].epochs
        epochs_run = max(len(attempt.epochs) for attempt in attempts) if last and last[-1].restored else len(last)
        saved = max(0, planned - epochs_run)
        epochs += saved
        span = _epochs(attempts[index])
        if span is None:
            no_mean = NO_MEAN_EPOCH
            continue
        mean = saved / attempts[index].epochs_trained
        time_ns += mean * length(busy(attempts[index]), span)
        if (trial.trial, index) in account.attempts:
            energy += mean * joules(account.attempts[trial.trial, index], span)
        else:
            unknown = account.reasons.get("trials", "the energy of an attempt is not known")
    about: Grounds = {"kind": "estimated", "source": SAVED_BY, "n_samples": len(pruned)}
    reason = account.reason or no_mean or unknown
    source = SAVED_BY if no_mean or not account.source else f"{SAVED_BY}; {account.source}"
    of_energy: Grounds = {**about, "source": source, "coverage": account.coverage}
    return {
        "pruning.saved_epochs": metric_value(epochs, "count", **about),
        "pruning.saved_time": metric_value_or(None if no_mean else time_ns / 1e6, "ms", no_mean, **about),
        "pruning.saved_energy": metric_value_or(None if reason else energy / JOULES_PER_KWH, "kWh", reason, **of_energy),
    }


def _epochs(attempt: AttemptRecord) -> Interval | None:
    """Return from when to when an attempt ran its epochs, None if it ran none."""
    if not attempt.epochs_trained:
        return None
    begin = attempt.loaded_ns if attempt.loaded_ns is not None else attempt.started_ns
    return begin or 0, attempt.epochs[-1].ended_ns
