"""Failed trials and retries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tuneoff.base.findings import Finding, check, judged, not_applicable
from tuneoff.record.run_record import TrialRecord
from tuneoff.trust.check.evidence import AdapterEvidence, FinishedRun, run_check

FAULTY, RETRIED = "faulty", "retried"


EXPECTED: Mapping[str, tuple[str, tuple[str, ...]]] = {  # a part of the cause, and who may be charged
    "raise": ("planted fault", ("workload",)),
    "nan": ("must be a finite number", ("workload",)),
    "inf": ("must be a finite number", ("workload",)),
    "no-report": ("each epoch must give", ("workload",)),
    # a framework that hides exit codes leaves only "its process died"
    "exit": ("", ("workload", "infrastructure")),
    "kill": ("", ("infrastructure",)),
}
"""Faults that the adapter itself has to meet; time and memory are the matter of limits.*."""


def trials_by_act(run: FinishedRun) -> dict[str, list[TrialRecord]]:
    """Return the trials of a run by what they did: as their configuration says, or the script of their workload."""
    noted = {note["digest"]: note["act"] for note in run.notes if "act" in note}
    by_act: dict[str, list[TrialRecord]] = {}
    for trial in run.record.trials:
        by_act.setdefault(str(noted.get(trial.digest, trial.configuration.get("act"))), []).append(trial)
    return by_act


def wrong_ends(run: FinishedRun, expected: Mapping[str, tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    """Yield the trials that had to fail as `expected` says, by their act, and are in no record or ended otherwise."""
    trials = trials_by_act(run)
    for act, (cause, charged) in expected.items():
        if not trials.get(act):
            yield f"the trial that had to fail ({act}) is in no record"
        for trial in trials.get(act, ()):
            if trial.state != "failed":
                yield f"the trial that had to fail ({act}) is {trial.state}"
            elif cause not in (trial.cause or ""):
                yield f"the trial that had to fail ({act}) failed for another cause: {trial.cause}"
            elif trial.charged not in charged:
                yield f"the failure ({act}) is charged to {trial.charged}, not to {' or '.join(charged)}"


@run_check(
    "failures.recorded",
    rule="each failed trial is there with its state, its cause and who is charged",
    reason="a failure that is left out flatters the framework",
    way_out="report every trial that fails, with its cause; what run_trial returns as failed is one",
    reads=(FAULTY,),
    has_time_limit=True,
)
def _recorded(run: FinishedRun) -> Iterator[str]:
    yield from wrong_ends(run, EXPECTED)


@run_check(
    "failures.others-intact",
    rule="the trials beside failed ones complete, and the run is done",
    reason="one bad configuration may not cost the others their results",
    way_out="let the framework go on after a failed trial, and replace a process that died",
    reads=(FAULTY,),
    has_time_limit=True,
)
def _intact(run: FinishedRun) -> Iterator[str]:
    for trial in trials_by_act(run).get("sound", ()):
        if trial.state != "completed":
            yield f"trial {trial.trial} beside the faulty ones is {trial.state}: {trial.cause}"
    if run.record.status != "done":
        yield f"the run is {run.record.status}: {run.record.reason}"


@check(
    "retries.infrastructure",
    rule="a trial whose process was killed is tried again where declared; else it fails alone",
    reason="a killed machine is not the framework's fault, and costs one attempt, not the trial",
    way_out="use tuneoff.run.trial.faults.Retries; declare `retry` as it is",
    reads=(RETRIED,),
)
def _infrastructure(evidence: AdapterEvidence) -> Finding:
    run = evidence.runs[RETRIED]
    is_retried = run.experiment.failures.retries > 0
    trials = trials_by_act(run)
    problems = []
    for trial in trials.get("kill-once", ()):
        states = [attempt.state for attempt in trial.attempts]
        wanted = ["superseded", "completed"] if is_retried else ["failed"]
        if states[-1:] != wanted[-1:] or len(states) < len(wanted):
            problems.append(f"a trial whose process was killed once has attempts {', '.join(states)}, not {', '.join(wanted)}")
        elif trial.attempts[0].charged != "infrastructure":
            problems.append(f"a killed process is charged to {trial.attempts[0].charged}, not to infrastructure")
    if not trials.get("kill-once"):
        problems.append("a trial whose process was killed is in no record")
    problems += [
        f"trial {trial.trial} beside it is {trial.state}" for trial in trials.get("sound", ()) if trial.state != "completed"
    ]
    return judged(problems, "tried again" if is_retried else "no retries are declared: it fails alone")


@run_check(
    "retries.at-most",
    rule="never more often than failures.retries",
    reason="a trial that is tried for ever holds up the run",
    way_out="ask Retries.may_retry once per death, and switch the framework's own retries off",
    reads=(RETRIED, FAULTY),
)
def _at_most(run: FinishedRun) -> Iterator[str]:
    most = run.experiment.failures.retries + 1
    for trial in trials_by_act(run).get("kill", ()):
        if len(trial.attempts) > most:
            yield f"{run.name}: {len(trial.attempts)} attempts at a trial, but {most} are allowed"


@check(
    "retries.workload-never",
    rule="what the workload raises is not tried again",
    reason="what the workload raises it raises again",
    way_out="retry deaths of processes alone, not outcomes",
    reads=(RETRIED,),
)
def _workload_never(evidence: AdapterEvidence) -> Finding:
    run = evidence.runs[RETRIED]
    if run.experiment.failures.retries == 0:
        return not_applicable("no retries are declared")
    return judged(
        f"a trial that raised was tried {len(trial.attempts)} times"
        for trial in trials_by_act(run).get("raise", ())
        if len(trial.attempts) > 1
    )


CHECKS = (_recorded, _intact, _infrastructure, _at_most, _workload_never)
