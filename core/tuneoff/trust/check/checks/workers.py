"""Workers, threads, and the limits of a trial."""

from __future__ import annotations

import os
from collections.abc import Iterator

from tuneoff.base.findings import Finding, check, judged, out_of_reach
from tuneoff.base.process_limits import NOT_JOINED, NOT_PINNED
from tuneoff.trust.check.checks.failures import trials_by_act
from tuneoff.trust.check.evidence import AdapterEvidence, FinishedRun, run_check
from tuneoff.trust.check.planned_runs import SILENCE_SECONDS, TRIAL_SECONDS
from tuneoff.trust.history_check.rules import DEVICE_RULES

READ = ("honest-max", "scripted", "random-1-workers-1", "random-2-workers-1")
WORKING = ("coordinator-killed", "wall-clock", "scripted")  # all their workers have the time to begin
LATE_SECONDS = 6.0  # from a limit of time to the end of the trial
LIMITERS = {"cgroup": "control group", "watchdog": "watchdog"}  # by the words of the record: those of a trial's cause


@run_check(
    "workers.at-most",
    rule="never more than workers.count trials at once",
    reason="one more trial at a time is more computing power",
    way_out="hand over at most workers.count trials that have not ended",
    reads=READ,
)
def _at_most(run: FinishedRun) -> Iterator[str]:
    count = run.experiment.workers.count
    waited = [trial.trial for trial in run.record.trials if any(attempt.waited_ns for attempt in trial.attempts)]
    if waited:
        yield f"{run.name}: {len(waited)} trials waited for a slot, first {waited[0]}: more than {count} ran at once"
    slots = {attempt.slot for trial in run.record.trials for attempt in trial.attempts if attempt.slot is not None}
    if any(slot >= count for slot in slots):
        yield f"{run.name}: slots {sorted(slots)} were used, but there are {count}"


@check(
    "workers.all-used",
    rule="and that many where there is work",
    reason="an idle worker is a loss of the framework, or of the adapter",
    way_out="tell the framework its parallelism: workers.count",
    reads=WORKING,
    needs_all=False,
)
def _all_used(evidence: AdapterEvidence) -> Finding:
    """One run suffices: a worker may come late, and a run may end before it does."""
    usage = []
    for run in evidence.some(*WORKING):
        spans = [
            (attempt.started_ns, attempt.ended_ns)
            for trial in run.record.trials
            for attempt in trial.attempts
            if attempt.started_ns is not None and attempt.ended_ns is not None
        ]
        most = max((sum(start <= moment < end for start, end in spans) for moment, _ in spans), default=0)
        usage.append((most, run.experiment.workers.count, run.name))
    if any(most >= count for most, count, _ in usage):
        return judged([])
    return judged(
        f"{name}: at most {most} of {count} workers had a trial at once, though there was work" for most, count, name in usage
    )


@run_check(
    "workers.devices",
    rule="a trial sees its slot's device alone, and no other trial sees that meanwhile",
    reason="trials that share an accelerator by accident share its time and memory",
    way_out="run each trial by run_trial, in a process that keeps CUDA_VISIBLE_DEVICES as it was given it",
    reads=("devices",),
)
def _devices(run: FinishedRun) -> Iterator[str]:
    yield from (breach.line for breach in run.breaches if breach.rule in DEVICE_RULES)


@check(
    "threads.per-trial",
    rule="a trial computes in one thread, as every library's variable says",
    reason="equal compute per trial is what makes their times comparable",
    way_out="leave the thread variables and the trial context as core set them, and start no computing thread of your own",
    reads=("honest-max",),
)
def _threads(evidence: AdapterEvidence) -> Finding:
    run = evidence.runs["honest-max"]
    planned = run.experiment.workers.threads
    problems = [
        f"trial {trial.trial} was limited to {attempt.threads} threads, but {planned} are planned"
        for trial in run.record.trials
        for attempt in trial.attempts
        if attempt.threads not in (None, planned)
    ]
    step, clock = run.record.step("trial"), run.record.clock
    start = clock.start_monotonic_ns if clock is not None else 0
    end = start + (step.ended_ns if step is not None and step.ended_ns is not None else 10**18)
    trials = [note for note in run.notes if note["what"] in ("load", "train") and note["t"] < end]
    if not trials and not problems:
        return out_of_reach("trials run on another machine, where their threads cannot be counted")
    for note in trials:
        odd = {name: value for name, value in note.get("variables", {}).items() if value != str(planned)}
        problems += [f"a trial's process has {name}={value}, not {planned}" for name, value in odd.items()]
        if note.get("threads_told", planned) != planned:
            problems.append(f"a workload was limited to {note['threads_told']} threads, not {planned}")
        if note.get("busy_threads", planned) > planned:
            problems.append(f"{note['busy_threads']} threads of a trial's process computed at once, not {planned}")
    return judged(dict.fromkeys(problems))


@run_check(
    "limits.time",
    rule="a silent trial and one that is too slow are ended as timed out",
    reason="a trial that hangs must not hang the run",
    way_out="let the supervisor kill it and accept its death; enforce limits yourself where it sees no process",
    reads=("faulty",),
    has_time_limit=True,
)
def _time(run: FinishedRun) -> Iterator[str]:
    trials = trials_by_act(run)
    for act, words, limit in (("hang", "silent", SILENCE_SECONDS), ("slow", "longer than", TRIAL_SECONDS)):
        for trial in trials.get(act, ()):
            attempt = trial.attempts[-1]
            if trial.state != "timed_out" or words not in (trial.cause or ""):
                yield f"a trial over its limit ({act}) is {trial.state}: {trial.cause}"
            elif attempt.started_ns is not None and attempt.ended_ns is not None:
                seconds = (attempt.ended_ns - attempt.started_ns) / 1e9
                if seconds > limit + LATE_SECONDS:
                    yield f"a trial over its limit of {limit:g} s ({act}) was ended after {seconds:.1f} s"
        if not trials.get(act):
            yield f"the trial over its limit ({act}) is in no record"


@check(
    "limits.memory",
    rule="one that takes too much memory is ended, with and without control groups",
    reason="a trial that exhausts memory takes it from the others",
    way_out="run trials in processes that run_trial can put into a control group, or declare your own memory_limiter",
    reads=("faulty", "without-groups"),
    has_time_limit=True,
    needs_all=False,
)
def _memory(evidence: AdapterEvidence) -> Finding:
    problems = list(_memory_problems(evidence.runs["faulty"], evidence.subject.capabilities.memory_limiter))
    for run in evidence.some("without-groups"):
        problems += _memory_problems(run, "watchdog")
    return judged(problems)


def _memory_problems(run: FinishedRun, limiter: str) -> Iterator[str]:
    in_force = str(run.record.environment["limits"]["memory"])
    expected = [limiter] if limiter else [words for word, words in LIMITERS.items() if word in in_force]
    trials = trials_by_act(run).get("memory", [])
    if not trials:
        yield f"{run.name}: the trial that takes too much memory is in no record"
    for trial in trials:
        cause = trial.cause or ""
        if trial.state != "failed" or "out of memory" not in cause or trial.charged != "workload":
            yield f"{run.name}: a trial over its limit of memory is {trial.state}, charged to {trial.charged}: {cause}"
        elif not any(words in cause for words in expected):
            yield f"{run.name}: memory is limited by {in_force!r}, but the cause is {cause!r}"
        elif len(trial.attempts) > 1:
            yield f"{run.name}: a trial over its limit of memory was tried again"


@run_check(
    "limits.processors",
    rule="what limits the slots is in force and in the record",
    reason="what limits a trial has to be in the record",
    way_out="run each trial by run_trial, in a process that may change its own affinity",
    reads=("honest-max", "scripted"),
)
def _processors(run: FinishedRun) -> Iterator[str]:
    record = run.record
    yield from (f"{run.name}: {flag.text}" for flag in record.flags if flag.name in (NOT_JOINED, NOT_PINNED))
    limits = record.environment["limits"]
    allowed = {attempt.cpus_allowed for trial in record.trials for attempt in trial.attempts if attempt.cpus_allowed is not None}
    usable = len(os.sched_getaffinity(0))
    if allowed and max(allowed) > usable:
        yield f"{run.name}: trials could use {max(allowed)} processors, more than there are"
    elif allowed and min(allowed) < usable and limits["cpus"].startswith("none"):
        yield f"{run.name}: trials could use {min(allowed)} of {usable} processors, but no limit was asked for"
