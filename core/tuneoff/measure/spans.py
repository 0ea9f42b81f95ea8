"""The spans of a run: job completion time and its seven contiguous parts, what overlaps them, busy and waiting attempts.

Metrics are in ms; all else is in ns since the run's start.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tuneoff.base.last import remembers_last
from tuneoff.record.metric_value import MetricValue, milliseconds
from tuneoff.record.run_record import AttemptRecord, RunRecord, TrialRecord

PARTS = ("deploy", "setup", "trial", "result_collection", "test", "metric_collection", "undeploy")
NO_BEST = "no best trial became known: no trial completed, or the run ended before"
NO_END = "un-deploy did not end"
Interval = tuple[int, int]  # start, end in ns since the run's start
AttemptKey = tuple[str, int]  # trial id, position in `TrialRecord.attempts`
ProcessKey = tuple[int, int]  # pid, start as the kernel has it


class Boundaries(NamedTuple):
    """The moments that split a run, in ns since its start: the ends of its `PARTS`; None where the run never came so far.

    They never run backwards: a trial that is seen to end after the best became known moves both.
    """

    deployed_ns: int | None
    first_submitted_ns: int | None
    last_ended_ns: int | None
    best_known_ns: int | None
    tested_ns: int | None
    metrics_collected_ns: int | None
    undeployed_ns: int | None


@remembers_last
def boundaries(run: RunRecord) -> Boundaries:
    """Return the moments between a run's parts, by event times.

    Deploy ends when its method returned; setup with the first submission; trial with the last trial's end, in whatever
    state; result collection when the best trial is known; the others when their method returned.
    """
    attempts = [attempt for trial in run.trials for attempt in trial.attempts]
    submitted = [attempt.submitted_ns for attempt in attempts if attempt.submitted_ns is not None]
    started = [attempt.started_ns for attempt in attempts if attempt.started_ns is not None]
    ended = [attempt.ended_ns for attempt in attempts if attempt.ended_ns is not None]
    best = run.best.known_ns if run.best is not None and run.best.trial is not None else None
    moments = [
        _step_end(run, "deploy"),
        min(submitted or started, default=None),
        max(ended, default=None),
        best,
        _step_end(run, "test"),
        _step_end(run, "metrics"),
        _step_end(run, "undeploy"),
    ]
    latest = 0
    for index, moment in enumerate(moments):
        if moment is not None:
            moments[index] = latest = max(latest, moment)
    return Boundaries(*moments)


def partition(run: RunRecord) -> dict[str, tuple[int, int] | None]:
    """Return the start and end of each part in ns since the run's start; None where the run has no such part.

    The parts are contiguous: each begins where the one before ended, so a small gap between two methods (writing an
    event, reading a file) belongs to the later part. Where a run skipped a part, the next one begins with its own method.
    """
    starts = {"metric_collection": _step_start(run, "metrics"), "undeploy": _step_start(run, "undeploy")}
    parts: dict[str, tuple[int, int] | None] = {}
    before: int | None = 0
    latest = 0
    for name, end in zip(PARTS, boundaries(run), strict=True):
        begin = before if before is not None else starts.get(name)
        parts[name] = (max(begin, latest), end) if end is not None and begin is not None else None
        latest = end if end is not None else latest
        before = end
    return parts


def partition_ns(run: RunRecord) -> dict[str, int | None]:
    """Return the length of each part in ns, and of `unassigned`, the time that is in none (nothing in a complete run)."""
    parts = {name: part[1] - part[0] if part is not None else None for name, part in partition(run).items()}
    total = jct_ns(run)
    assigned = sum(part for part in parts.values() if part is not None)
    return {**parts, "unassigned": total - assigned if total is not None else None}


def part_reasons(run: RunRecord) -> dict[str, str]:
    """Return why a part of a run, or the time in none, is missing where it is."""
    return {
        "deploy": "deploy did not end",
        "setup": "no trial was submitted",
        "trial": "no trial ended",
        "result_collection": NO_BEST,
        "test": NO_BEST if boundaries(run).best_known_ns is None else "the test did not end",
        "metric_collection": "metrics were not collected",
        "undeploy": NO_END,
        "unassigned": NO_END,
    }


def jct_ns(run: RunRecord) -> int | None:
    """Return the job completion time: end of un-deploy minus start of deploy; None if un-deploy never ended."""
    return boundaries(run).undeployed_ns


def last_ns(run: RunRecord) -> int:
    """Return the end of the job; of a run whose un-deploy never ended, the last moment that anybody noted."""
    end = boundaries(run).undeployed_ns
    if end is not None:
        return end
    moments = [attempt.ended_ns for trial in run.trials for attempt in trial.attempts]
    moments += [moment for step in run.steps for moment in (step.started_ns, step.ended_ns)]
    return max((moment for moment in moments if moment is not None), default=0)


def span_metrics(run: RunRecord) -> dict[str, MetricValue]:
    """Return JCT, its parts, and the spans preparation, optimization, evaluation, all in ms.

    JCT without the test is what frameworks are compared by: the test is core's own fresh process, the same for all.
    """
    marks, parts, total = boundaries(run), partition_ns(run), jct_ns(run)
    reasons = part_reasons(run)
    values = {"time.jct": milliseconds(total, NO_END, kind="measured", n_samples=1)}
    for name, reason in reasons.items():
        values[f"time.{name}"] = milliseconds(parts[name], reason, kind="measured", n_samples=1)
    for name in ("test", "metric_collection"):
        part = parts[name]
        without = total - part if total is not None and part is not None else None
        values[f"time.jct_without_{name}"] = milliseconds(without, NO_END if total is None else reasons[name])
    values["time.preparation"] = milliseconds(marks.first_submitted_ns, reasons["setup"])
    values["time.optimization"] = milliseconds(_between(marks.deployed_ns, _tested(marks)), reasons["test"])
    values["time.evaluation"] = milliseconds(_between(marks.last_ended_ns, _tested(marks)), reasons["test"])
    ends = [trial.attempts[-1].ended_ns for trial in run.trials if trial.state == "completed" and trial.attempts]
    last_completed_ns = max((end for end in ends if end is not None), default=None)
    collecting = _between(last_completed_ns, marks.best_known_ns)
    values["time.result_collection_from_last_completed"] = milliseconds(collecting, NO_BEST)
    values["time.clock_uncertainty"] = milliseconds(run.clock_uncertainty_ns, "", kind="derived")
    return values


def _tested(marks: Boundaries) -> int | None:
    return marks.tested_ns if marks.best_known_ns is not None else None


def _between(start: int | None, end: int | None) -> int | None:
    return end - start if start is not None and end is not None else None


def _step_end(run: RunRecord, name: str) -> int | None:
    return next((step.ended_ns for step in run.steps if step.step == name), None)


def _step_start(run: RunRecord, name: str) -> int | None:
    return next((step.started_ns for step in run.steps if step.step == name), None)


def started_attempts(run: RunRecord) -> Iterator[tuple[AttemptKey, AttemptRecord]]:
    """Yield the attempts that a process took up."""
    for trial in run.trials:
        for index, attempt in enumerate(trial.attempts):
            if attempt.started_ns is not None:
                yield (trial.trial, index), attempt


def process_key(name: str, host: str) -> ProcessKey | None:
    """Return the key of a process of that host by its name (host:pid:start); None on another host."""
    where, pid, started = name.rsplit(":", 2) if name.count(":") >= 2 else ("", "", "")
    return (int(pid), int(started)) if where == host and pid.isdigit() and started.lstrip("-").isdigit() else None


def foreign_attempts(run: RunRecord, host: str) -> frozenset[AttemptKey]:
    """Return the attempts that ran elsewhere than on the sampled host: on another one, or in a pod."""
    return frozenset(
        key for key, attempt in started_attempts(run) if attempt.process and attempt.process.rsplit(":", 2)[0] != host
    )


class OnSlot(NamedTuple):
    """A started attempt with its trial: what occupies a slot from `started_ns` to `ended_ns`."""

    trial: TrialRecord
    attempt: AttemptRecord
    key: AttemptKey
    slot: int
    started_ns: int
    ended_ns: int


def waits(attempt: AttemptRecord) -> list[Interval]:
    """Return when an attempt waited inside `report`; to its end where its last report never returned."""
    # plain loops and comparisons: a run may have half a million epochs, and several metrics look at each
    ended, epochs = attempt.ended_ns, attempt.epochs
    assert ended is not None
    intervals = []
    for epoch in epochs:
        start, end = epoch.report_began_ns or epoch.ended_ns, epoch.reported_ns
        if end is None and not epoch.is_reported:
            continue
        if end is None:
            # with a later epoch the report did return, and its line is missing: the wait is unknown, not endless
            end = ended if epoch is epochs[-1] else start
        elif end > ended:
            end = ended
        if end > start:
            intervals.append((start, end))
    return intervals


def busy(attempt: AttemptRecord, waited: Sequence[Interval] | None = None) -> list[Interval]:
    """Return when an attempt loaded, trained, validated or kept its checkpoint: its whole time but the waits.

    `waited`: its `waits`, where the caller has them.
    """
    if attempt.started_ns is None or attempt.ended_ns is None:
        return []
    edges = [attempt.started_ns, *itertools.chain.from_iterable(waits(attempt) if waited is None else waited), attempt.ended_ns]
    return [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if end > start]


def busy_ns(attempt: AttemptRecord, after_ns: int | None = None) -> int:
    """Return the busy time of an attempt, all of it or what lies after a moment."""
    if after_ns is None:
        if attempt.started_ns is None or attempt.ended_ns is None:
            return 0
        return attempt.ended_ns - attempt.started_ns - sum(end - start for start, end in waits(attempt))
    return sum(end - max(start, after_ns) for start, end in busy(attempt) if end > after_ns)


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the same time as disjoint intervals in order."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        elif end > start:
            merged.append((start, end))
    return merged


def most_at_once(intervals: Iterable[Interval]) -> int:
    """Return how many of the intervals overlap at once at most; those that touch do not."""
    moves = sorted(move for start, end in intervals for move in ((start, 1), (end, -1)))
    return max(itertools.accumulate(change for _, change in moves), default=0)


def length(intervals: Sequence[Interval], window: Interval) -> int:
    """Return how much of the window the intervals cover; they must be disjoint and in order."""
    start, end = window
    if intervals and intervals[0][0] >= start and intervals[-1][1] <= end:
        return sum(finish - begin for begin, finish in intervals)
    total = 0
    for index in range(max(0, bisect.bisect_left(intervals, window) - 1), len(intervals)):
        begin, finish = intervals[index]
        if begin >= end:
            break
        total += max(0, min(finish, end) - max(begin, start))
    return total
