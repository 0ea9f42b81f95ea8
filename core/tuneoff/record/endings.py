"""How a run and its attempts ended: who may say so, and what it is called in every framework.

A run: as its supervisor saw it, else as its events tell; and whether the framework did what the experiment fixed.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from tuneoff.base.identity import configuration_digest
from tuneoff.base.processes import is_own_end
from tuneoff.experiment.spec import RunSpec
from tuneoff.experiment.strategies import listed_configurations
from tuneoff.record.event_index import AttemptEvents, Collected, Key, Timeline
from tuneoff.record.events.schema import Charged
from tuneoff.record.run_record import BestRecord, FlagRecord, RunStatus, StepRecord, TestRecord, TrialRecord, TrialState

FOREIGN = "foreign_configurations"
MISSING = "missing_configurations"
NOT_STOPPED = "scripted_stop_missed"
LOST = "lost: its end was not observed"
NEVER_STARTED = "submitted, but no process took it up before the run ended"
UNKNOWN = "failed without a cause"
AT_GOAL = "the goal was met"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """How a run ended, as its supervisor saw it; a run's events alone cannot tell a time limit from a kill."""

    status: RunStatus
    reason: str | None = None
    charged: Charged | None = None


KILLED = Ruling(status="interrupted", reason="its tuneoff command was killed", charged="user")
NO_SUPERVISOR = Ruling(status="failed", reason="the process that supervised this copy of the job ended", charged="infrastructure")
_UNWRITTEN = {
    errno.ENOSPC: "the disk was full",
    errno.EDQUOT: "the quota was used up",
    errno.EROFS: "the disk was read-only",
    errno.EACCES: "permission was denied",
}
UNWRITABLE = {  # by errno
    number: Ruling(status="interrupted", reason=f"its results folder could not be written: {text}", charged="infrastructure")
    for number, text in _UNWRITTEN.items()
}
IN_NO_EVENT = {  # by reason: nobody could write one
    ruling.reason: ruling for ruling in (KILLED, NO_SUPERVISOR, *UNWRITABLE.values())
}


def ruling_of(
    steps: Sequence[StepRecord],
    trials: Sequence[TrialRecord],
    best: BestRecord | None,
    test: TestRecord | None,
    promises: Sequence[FlagRecord],
) -> Ruling:
    """Return how a run ended by its events: done, failed (a step failed, no trial completed, no test) or interrupted."""
    failed = next((step for step in steps if step.error is not None), None)
    if failed is not None and failed.error == "interrupted":
        return Ruling(status="interrupted", reason=f"interrupted in step {failed.step}", charged=failed.charged)
    is_past_collect = failed is None or failed.step in ("test", "metrics", "undeploy")  # a failed test follows from a wrong best
    if is_past_collect and best is not None and best.trial is not None and all(trial.trial != best.trial for trial in trials):
        names = [trial.trial for trial in trials]
        text = ", ".join(names) if len(names) <= 3 else f"{names[0]} ... {names[-1]}"
        problem = (
            f"collect_results named trial {best.trial!r} as the best, which was never submitted; submitted: {text or 'none'}"
        )
        return Ruling(status="failed", reason=problem, charged="framework")
    if failed is not None:
        undeploy = next((step for step in steps if step.step == "undeploy" and step.error and step is not failed), None)
        besides = "" if undeploy is None else f"; then {undeploy.error}"
        return Ruling(status="failed", reason=f"step {failed.step} failed: {failed.error}{besides}", charged=failed.charged)
    if not any(step.step == "undeploy" and step.ended_ns is not None for step in steps):
        return Ruling(status="interrupted", reason="the coordinator ended before un-deploy", charged="infrastructure")
    if not any(trial.state == "completed" for trial in trials):
        charges = [trial.charged for trial in trials if trial.charged is not None]
        most = Counter(sorted(charges)).most_common(1)
        # a framework that ran nothing, or stopped everything, would do so again
        is_its_own = any(trial.state == "pruned" for trial in trials) or all(trial.cause == NEVER_STARTED for trial in trials)
        charged: Charged = most[0][0] if most else "framework" if is_its_own else "infrastructure"
        causes = Counter(trial.cause for trial in trials if trial.state in ("failed", "timed_out") and trial.cause)
        reason = "no trial completed"
        for cause, count in causes.most_common(1):  # of causes that are as frequent, the first one
            every = "" if count == causes.total() else f", {count} of them"
            reason += f": {causes.total()} of {len(trials)} failed{every}: {cause}"
        return Ruling(status="failed", reason=reason, charged=charged)
    if best is None or best.trial is None:
        return Ruling(status="failed", reason="the framework named no best trial", charged="framework")
    foreign = next((flag for flag in promises if flag.name == FOREIGN), None)
    if foreign is not None:
        return Ruling(status="failed", reason=foreign.text, charged="framework")
    if test is None:
        return Ruling(status="failed", reason="the best trial was not tested", charged="infrastructure")
    return Ruling(status="done")


def promise_flags(spec: RunSpec, trials: Sequence[TrialRecord], *, is_at_goal: bool = False) -> list[FlagRecord]:
    """Return flags for configurations beyond the given list (`fixed`, `grid`), for missing ones, and for missed stops.

    Foreign configurations fail the run: what it measured is not what was asked for. Missing ones may be the budget's doing, and
    are none where the run ended at its goal.
    """
    flags = []
    listed = listed_configurations(spec)
    if listed is not None:
        expected = Counter(configuration_digest(configuration) for configuration in listed)
        trained = Counter(trial.digest for trial in trials if trial.used_ticket)
        foreign, missing = (trained - expected).total(), (expected - trained).total()
        if foreign:
            text = f"{foreign} trials trained configurations beyond the given list of sampler {spec.experiment.sampler.name!r}"
            flags.append(FlagRecord(name=FOREIGN, text=text, count=foreign))
        if missing and not is_at_goal:
            text = f"{missing} of {expected.total()} given configurations were not trained"
            flags.append(FlagRecord(name=MISSING, text=text, count=missing))
    if spec.experiment.pruner.name == "scripted":
        stops, epochs = spec.experiment.stops, spec.experiment.budget.epochs_per_trial
        completed = [trial for trial in trials if trial.state == "completed" and stops.get(trial.digest, epochs) < epochs]
        missed = [trial.trial for trial in completed if stops[trial.digest] <= len(trial.attempts[-1].epochs)]
        if missed:
            text = f"trials that had to stop ran to their end: {', '.join(missed[:5])}"
            flags.append(FlagRecord(name=NOT_STOPPED, text=text, count=len(missed)))
    return flags


class Ending(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The end of an attempt, on the run's time scale; `ended_ns` is None if it never started and nobody noted an end."""

    state: TrialState
    ended_ns: int | None
    cause: str | None
    charged: Charged | None
    by: str
    uncertainty_ns: int = 0
    cpu_ns: int | None = None
    peak_rss_bytes: int | None = None
    is_at_goal: bool = False  # the framework ended it as it ended the run


class RunStop(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What ended a run before its own end, and with it the attempts that ran; `since_ns`: when it was first noted, if it was."""

    cause: str
    charged: Charged
    cancels: bool = False  # the trials were cancelled; else they failed
    since_ns: int | None = None


def ending(
    collected: Collected | None,
    timeline: Timeline,
    key: Key,
    execution: AttemptEvents | None,
    planned_epochs: int,
    stop: RunStop | None = None,
) -> Ending:
    """Return how an attempt ended.

    The trial's own end wins; else the first observer's, with cause and charge of the kill that was announced before it;
    else a death that an adapter saw; else an announced kill; else it is lost, charged to the infrastructure, and its end
    is its last sign of life. What failed once the run was being stopped has the cause of `stop`. An attempt that ran all
    planned epochs is complete, whatever an observer calls it; one that did not is not, whatever the framework calls it, unless
    its training ended by itself and no decision to stop fell on one of its epochs.
    Where the framework ended the run at its goal, the trial that met it is complete, and the others that it ended are cancelled.
    `collected` is None for an execution that observers cannot have meant.
    """
    end = _ending(collected, timeline, key, execution, planned_epochs)
    goal = timeline.first(collected.goals) if collected is not None and key[0] not in collected.stops else None
    if goal is not None and goal.event.by and end.state == "pruned":  # core ends no trial
        if goal.event.trial == key[0]:
            return msgspec.structs.replace(end, state="completed", is_at_goal=True)
        if end.ended_ns is not None and end.ended_ns >= timeline.seen_at(goal):
            return msgspec.structs.replace(end, state="cancelled", cause=AT_GOAL, is_at_goal=True)
    if stop is None or end.state != "failed" or end.ended_ns is None:
        return end
    # the run's stop ended it, if nobody saw another cause, or whatever was seen of its end came later
    is_by_stop = end.cause in (LOST, UNKNOWN)
    if end.cause != LOST and stop.since_ns is not None:
        moments = [end.ended_ns]
        if collected is not None:
            moments += [timeline.seen_at(kill) for kill in collected.killed.get(key, ())]
            moments += [timeline.seen_at(death) for death in collected.died.get(key, ())]
        is_by_stop = min(moments) >= stop.since_ns
    if not is_by_stop:
        return end
    return msgspec.structs.replace(end, state="cancelled" if stop.cancels else "failed", cause=stop.cause, charged=stop.charged)


def _ending(
    collected: Collected | None, timeline: Timeline, key: Key, execution: AttemptEvents | None, planned_epochs: int
) -> Ending:
    seen = _observed(collected, timeline, key) if collected is not None else None
    if execution is not None and execution.ended is not None:
        is_stopped = collected is not None and any(
            stop.event.epoch <= len(execution.epochs) for stop in collected.stops.get(key[0], ())
        )
        return _own(timeline, execution, planned_epochs, seen, is_stopped)
    epochs = len(execution.epochs) if execution is not None else 0
    if execution is None:
        if seen is None:
            return Ending(state="cancelled", ended_ns=None, cause=NEVER_STARTED, charged=None, by="derivation")
        return seen
    last = timeline.at(execution.process, execution.last_t)
    if seen is None:
        seen = Ending(state="failed", ended_ns=last, cause=LOST, charged="infrastructure", by="derivation")
    state, charged = seen.state, seen.charged
    if epochs >= planned_epochs:
        state, charged = "completed", None
    elif state == "completed":
        state = "pruned"
    return msgspec.structs.replace(
        seen,
        state=state,
        # an observer may speak of an end before the process is really gone
        ended_ns=max(last, seen.ended_ns if seen.ended_ns is not None else last),
        charged=charged,
        uncertainty_ns=seen.uncertainty_ns + timeline.uncertainty_ns(execution.process),
    )


def _own(timeline: Timeline, execution: AttemptEvents, planned_epochs: int, seen: Ending | None, is_stopped: bool) -> Ending:
    end = execution.ended
    assert end is not None
    state: TrialState = end.state
    if end.state != "failed" and len(execution.epochs) >= planned_epochs:
        state = "completed"
    elif end.state == "completed" and (is_stopped or not end.ended_early):
        state = "pruned"
    cause, charged = end.cause, end.charged
    if state == "failed" and cause is None and seen is not None:  # it was ended from outside and does not know why
        cause, charged = seen.cause, seen.charged
        state = "timed_out" if seen.state == "timed_out" else state
    if state == "failed":
        cause, charged = cause or UNKNOWN, charged or "infrastructure"
    return Ending(
        state=state,
        ended_ns=timeline.at(execution.process, execution.last_t),
        cause=cause,
        charged=charged,
        by=end.by,
        uncertainty_ns=end.uncertainty_ns + timeline.uncertainty_ns(execution.process),
        cpu_ns=end.cpu_ns,
        peak_rss_bytes=end.peak_rss_bytes,
    )


def _observed(collected: Collected, timeline: Timeline, key: Key) -> Ending | None:
    state: TrialState
    kill = timeline.first(collected.killed.get(key))
    end = timeline.first(collected.observed_ends.get(key))
    death = timeline.first(collected.died.get(key))
    if end is not None:
        noted = end.event
        state, cause, charged, by, ended_ns = noted.state, noted.cause, noted.charged, noted.by, timeline.seen_at(end)
    elif death is not None:
        state, cause, charged, by, ended_ns = "failed", None, None, "coordinator", timeline.seen_at(death)
    elif kill is not None:
        state, cause, charged, by, ended_ns = "failed", None, None, "supervisor", timeline.seen_at(kill)
    else:
        return None
    if state == "failed":
        if kill is not None:
            cause, charged = kill.event.cause, kill.event.charged
            state = "timed_out" if kill.event.limit == "time" else state
        elif death is not None:
            cause, charged = (
                cause or death.event.cause,
                charged or ("workload" if is_own_end(death.event.exit_code) else "infrastructure"),
            )
        cause, charged = cause or UNKNOWN, charged or "infrastructure"
    return Ending(
        state=state,
        ended_ns=ended_ns,
        cause=cause,
        charged=charged,
        by=by,
        uncertainty_ns=end.event.uncertainty_ns if end is not None else 0,
        cpu_ns=end.event.cpu_ns if end is not None else None,
        peak_rss_bytes=end.event.peak_rss_bytes if end is not None else None,
    )
