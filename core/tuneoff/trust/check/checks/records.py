"""Events and records: readable, whole, each trial announced and ended."""

from __future__ import annotations

from collections.abc import Iterator

from tuneoff.base.findings import Finding, check, judged
from tuneoff.trust.check.evidence import AdapterEvidence, FinishedRun, run_check
from tuneoff.trust.check.probe_workload import PHASE

READ = ("honest-max", "honest-min", "random-2-workers-1", "default-sampler", "scripted", "faulty", "retried")
ANNOUNCED = {"handed-out-twice", "never-handed-out", "started-early"}  # rules of a history that have a check of their own
ENDED = {"ended-twice", "lost", "no-end"}
OF_OTHERS = {  # rules that families of their own judge
    *("budget-over", "budget-over-epochs", "budget-short", "epochs", "too-many-retries", "retried-own-failure"),
    *("configuration-changed", "not-given", "given-point-twice", "given-point-never"),
}
BROKEN = {"missing_lines", "orphan_events", "foreign_events", "unreadable_event"}


@check(
    "records.schema",
    rule="every event and the record can be read back by their schemas",
    reason="an unreadable record is not a result",
    way_out="write events only by context.events and trial_process(...).events; their types: tuneoff explain events",
    reads=READ,
    needs_all=False,
)
def _schema(evidence: AdapterEvidence) -> Finding:
    return judged(f"run {run.name}: {run.problem}" for run in evidence.runs.values() if run.stored is None)


@run_check(
    "records.no-gaps",
    rule="no event line is missing, torn or of another run",
    reason="every number is derived from the events: a missing line is a wrong number",
    way_out="leave the files under events/ alone, and give each run its own folder",
    reads=READ,
)
def _gaps(run: FinishedRun) -> Iterator[str]:
    record = run.record
    yield from (f"{run.name}: {flag.text} (flag {flag.name})" for flag in record.flags if flag.name in BROKEN)
    killed = sum(attempt.ended_by != "trial" for trial in record.trials for attempt in trial.attempts)
    if record.torn_lines > killed:  # the line that a killed process was writing
        yield f"{run.name}: {record.torn_lines} lines have no end, but only {killed} processes were killed"


@run_check(
    "trials.announced",
    rule="each trial is submitted before it starts, once per attempt",
    reason="the time from submission to start is the framework's dispatch",
    way_out="call context.submitted(trial, configuration, attempt=...) once per attempt, before it is handed over",
    reads=READ,
)
def _announced(run: FinishedRun) -> Iterator[str]:
    yield from (f"{run.name}: {breach.line}" for breach in run.breaches if breach.rule in ANNOUNCED)


@run_check(
    "trials.ended",
    rule="each attempt that began has exactly one end",
    reason="a trial without an end has no time and no state",
    way_out="run every submitted trial through run_trial, and write worker_died for a process that died",
    reads=READ,
)
def _ended(run: FinishedRun) -> Iterator[str]:
    yield from (f"{run.name}: {breach.line}" for breach in run.breaches if breach.rule in ENDED)
    for trial in run.record.trials:
        if not trial.attempts or trial.attempts[-1].started_ns is None:
            yield f"{run.name}: trial {trial.trial} was submitted, but never started ({trial.state}: {trial.cause})"
        for attempt in trial.attempts:
            if attempt.ended_by == "derivation":
                yield f"{run.name}: no process wrote the end of attempt {attempt.attempt} of trial {trial.trial}"


@run_check(
    "trials.once",
    rule="no trial is trained twice, in two places, or after its end",
    reason="a trial that ran twice, or never, falsifies times and results",
    way_out="`tuneoff verify` draws the events; give a trial to one process, and begin it again only as its next attempt",
    reads=READ,
)
def _once(run: FinishedRun) -> Iterator[str]:
    others = (breach for breach in run.breaches if breach.rule not in ANNOUNCED | ENDED | OF_OTHERS)
    yield from (f"{run.name}: {breach.line}" for breach in others)


@run_check(
    "records.phases",
    rule="each epoch has the phases that its training timed, and the items that it counted",
    reason="items per second, and what a trial spends its time on, are to be compared in every framework",
    way_out="run each trial by run_trial, one after the other in its process",
    reads=("honest-max",),
)
def _phases(run: FinishedRun) -> Iterator[str]:
    for trial in run.record.trials:
        for epoch in trial.attempts[-1].epochs:
            if (phases := sorted(epoch.phases or ())) != [PHASE] or epoch.items != epoch.epoch:
                counted = f"{epoch.items} items and phases {phases}, not {epoch.epoch} and {[PHASE]}"
                yield f"{run.name}: epoch {epoch.epoch} of trial {trial.trial} has {counted}"
