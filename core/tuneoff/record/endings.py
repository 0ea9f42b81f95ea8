"""How an attempt ended: who may say so, and what it is called in every framework."""

from __future__ import annotations

import msgspec

from tuneoff.record.event_index import AttemptEvents, Collected, Key
from tuneoff.record.events.schema import Charged
from tuneoff.record.run_record import TrialState
from tuneoff.record.timeline import Timeline

LOST = "lost: nobody saw its end"
NEVER_STARTED = "submitted, but no process took it up before the run ended"
UNKNOWN = "failed without a cause"


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


class RunStop(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What ended a run before its own end, and with it the attempts that ran; `since_ns`: when it was first noted, if it was."""

    cause: str
    charged: Charged
    cancels: bool = False  # the trials were cancelled; else they failed
    since_ns: int | None = None


def ending(
    found: Collected | None,
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
    planned epochs is complete, whatever an observer calls it; one that did not is not, whatever the framework calls it.
    `found` is None for an execution that observers cannot have meant.
    """
    end = _ending(found, timeline, key, execution, planned_epochs)
    if stop is None or end.state != "failed" or end.ended_ns is None or not _is_by(found, timeline, key, end, stop):
        return end
    return msgspec.structs.replace(end, state="cancelled" if stop.cancels else "failed", cause=stop.cause, charged=stop.charged)


def _is_by(found: Collected | None, timeline: Timeline, key: Key, end: Ending, stop: RunStop) -> bool:
    """Tell whether the run's stop ended an attempt: nobody saw another cause, or whatever was seen of its end came later."""
    if end.cause == LOST or stop.since_ns is None:
        return end.cause in (LOST, UNKNOWN)
    moments = [end.ended_ns or 0]
    if found is not None:
        moments += [timeline.seen_at(kill) for kill in found.killed.get(key, ())]
        moments += [timeline.seen_at(death) for death in found.died.get(key, ())]
    return min(moments) >= stop.since_ns


def _ending(
    found: Collected | None, timeline: Timeline, key: Key, execution: AttemptEvents | None, planned_epochs: int
) -> Ending:
    seen = _observed(found, timeline, key) if found is not None else None
    if execution is not None and execution.ended is not None:
        return _own(timeline, execution, planned_epochs, seen)
    epochs = len(execution.epochs) if execution is not None else 0
    if execution is None:
        if seen is None:
            return Ending(state="cancelled", ended_ns=None, cause=NEVER_STARTED, charged=None, by="derivation")
        return seen
    last = timeline.at(execution.process, execution.last_t)
    if seen is None:
        seen = Ending(state="failed", ended_ns=last, cause=LOST, charged="infrastructure", by="derivation")
    state, cause, charged = seen.state, seen.cause, seen.charged
    if epochs >= planned_epochs:
        state, charged = "completed", None
    elif state == "completed":
        state = "pruned"
    return Ending(
        state=state,
        # an observer may speak of an end before the process is really gone
        ended_ns=max(last, seen.ended_ns if seen.ended_ns is not None else last),
        cause=cause,
        charged=charged,
        by=seen.by,
        uncertainty_ns=seen.uncertainty_ns + timeline.uncertainty_ns(execution.process),
        cpu_ns=seen.cpu_ns,
        peak_rss_bytes=seen.peak_rss_bytes,
    )


def _own(timeline: Timeline, execution: AttemptEvents, planned_epochs: int, seen: Ending | None) -> Ending:
    end = execution.ended
    assert end is not None
    state: TrialState = end.state
    if end.state != "failed" and len(execution.epochs) >= planned_epochs:
        state = "completed"
    elif end.state == "completed":
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


def _observed(found: Collected, timeline: Timeline, key: Key) -> Ending | None:
    state: TrialState
    kill = timeline.first(found.killed.get(key))
    end = timeline.first(found.observed_ends.get(key))
    death = timeline.first(found.died.get(key))
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
            cause, charged = cause or death.event.cause, charged or _charge(death.event.exit_code)
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


def _charge(exit_code: int | None) -> Charged:
    """An exit code is the trial's own doing; a signal (negative) may come from anywhere."""
    return "workload" if exit_code is not None and exit_code >= 0 else "infrastructure"
