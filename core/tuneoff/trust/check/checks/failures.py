"""Failed trials and retries; and careless trainings: each has the process, configuration and end that it would have alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tuneoff.base.findings import Finding, check, judged, not_applicable, not_tested, out_of_reach
from tuneoff.base.identity import canonical_json, configuration_digest
from tuneoff.record.events import schema
from tuneoff.record.run_record import TrialRecord
from tuneoff.tell.live import output
from tuneoff.trust.check.checks.records import BROKEN
from tuneoff.trust.check.evidence import AdapterEvidence, FinishedRun, run_check
from tuneoff.trust.check.planned_runs import CHOICES
from tuneoff.trust.check.probe_workload import HALF_LINE

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
RUN = "careless"
PROGRAM = ["probe_workload.py"]  # what `sys.argv` is under `python probe_workload.py`
BY_WORKLOAD = ("workload",)
ENDS = {"raise-base": ("planted end", BY_WORKLOAD), "kill-self": ("its own code ended its process", BY_WORKLOAD)}


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
    rule="the other trials complete, and the run is done",
    reason="one bad configuration must not cost the others their results",
    way_out="let the framework go on after a failed trial, and replace a process that died",
    reads=(FAULTY,),
    has_time_limit=True,
)
def _intact(run: FinishedRun) -> Iterator[str]:
    for trial in trials_by_act(run).get("sound", ()):
        if trial.state != "completed":
            yield f"trial {trial.trial}, not a faulty one, is {trial.state}: {trial.cause}"
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
        f"trial {trial.trial} next to it is {trial.state}" for trial in trials.get("sound", ()) if trial.state != "completed"
    ]
    return judged(problems, "tried again" if is_retried else "no retries are declared: it fails alone")


@run_check(
    "retries.at-most",
    rule="never more often than failures.retries",
    reason="endless retries block the run",
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
    reason="the workload would raise it again",
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


def _starts(run: FinishedRun) -> Sequence[Mapping[str, Any]]:
    """Return what each training found at its start."""
    return [note for note in run.notes if note["what"] == "start" and note["t"] < run.trials_ended_ns]


def _judged(evidence: AdapterEvidence, problems: Iterator[str]) -> Finding:
    """Return what the notes of trials tell; nothing where they ran on another machine."""
    if not _starts(evidence.runs[RUN]):
        return out_of_reach("trials run on another machine, where their process cannot be seen")
    return judged(dict.fromkeys(problems))


@check(
    "process.fresh",
    rule="each trial finds arguments, folder, umask, signal handlers, locale, start method and environment as the first one did",
    reason="what one training changes of its process may not change the next one, in any framework",
    way_out="run each trial by run_trial, in the main thread of its process",
    reads=(RUN,),
)
def _fresh(evidence: AdapterEvidence) -> Finding:
    starts = _starts(evidence.runs[RUN])
    expected = {**starts[0]["process"], "arguments": PROGRAM} if starts else {}
    values = ((name, value) for start in starts for name, value in start["process"].items())
    return _judged(
        evidence,
        (f"a trial found {name} {value!r}, not {expected[name]!r}" for name, value in values if value != expected[name]),
    )


@check(
    "process.children",
    rule="a training may start processes",
    reason="a DataLoader with workers and every Pool do",
    way_out="let no process that runs trials be a daemon of multiprocessing",
    reads=(RUN,),
)
def _children(evidence: AdapterEvidence) -> Finding:
    starts = _starts(evidence.runs[RUN])
    return _judged(evidence, (f"a training could start no process: {start['child']}" for start in starts if start["child"]))


@check(
    "configurations.own",
    rule="a training that changes its configuration changes no other one",
    reason="a list that grows from trial to trial changes the search",
    way_out="hand each trial a copy, and run it by run_trial, which makes one",
    reads=(RUN,),
)
def _own(evidence: AdapterEvidence) -> Finding:
    run = evidence.runs[RUN]
    choices = run.experiment.search_space.dimensions["layers"].choices  # type: ignore[union-attr]
    values = [start["configuration"].get("layers") for start in _starts(run)]
    values += [event.configuration.get("layers") for event in run.of(schema.TrialSubmitted)]
    return judged(dict.fromkeys(f"a trial has layers {value}, which no choice is" for value in values if value not in choices))


@check(
    "configurations.choices",
    rule='choices of equal value are told apart by their type: 1, 1.0, true, "1"',
    reason="True as a 1, or as a text, trains another model",
    way_out="translate the space by SpaceTranslation, or look choices up by their place, never by ==",
    reads=(RUN,),
)
def _choices(evidence: AdapterEvidence) -> Finding:
    run = evidence.runs[RUN]
    submitted = [event.configuration for event in run.of(schema.TrialSubmitted) if event.attempt == 1]
    count = Counter(canonical_json(configuration["choice"]) for configuration in submitted)
    if run.experiment.sampler.name != "fixed":
        odd = count.keys() - {canonical_json(choice) for choice in CHOICES}
        return judged(f"a trial has choice {text}, which no choice is" for text in sorted(odd))
    listed = {configuration_digest(configuration): configuration for configuration in run.experiment.configurations}
    wanted = Counter(canonical_json(configuration["choice"]) for configuration in listed.values())
    return judged(
        f"choice {text} was given to {wanted[text]} trials, but {count[text]} had it"
        for text in sorted(wanted | count)
        if wanted[text] != count[text]
    )


@run_check(
    "failures.any-end",
    rule="an exception of any class, and a signal of the training's own code, is a failure of that trial and charged to it",
    reason="SystemExit in a training is not a death of the framework, and must not cost a worker or a retry",
    way_out="run each trial by run_trial; where its process died ask tuneoff.run.trial.faults.Retries for the cause",
    reads=(RUN,),
)
def _any_end(run: FinishedRun) -> Iterator[str]:
    yield from wrong_ends(run, ENDS)
    for act in ENDS:
        for trial in trials_by_act(run).get(act, ()):
            if len(trial.attempts) > 1:
                yield f"the trial that had to fail ({act}) was tried {len(trial.attempts)} times"


@run_check(
    "failures.no-number",
    rule="a value that is not a number fails its trial, and the cause names the type",
    reason="a text that is taken for a number, or compared as a text, ranks trials wrongly",
    way_out="take values only from `report`, which has checked them",
    reads=(RUN,),
)
def _no_number(run: FinishedRun) -> Iterator[str]:
    yield from wrong_ends(run, {"text": ("str", BY_WORKLOAD)})


@check(
    "records.any-output",
    rule="all epochs of a training are in the record, and nothing else, no matter what it prints",
    reason="a progress bar or a line like an event must not hide or fake a result",
    way_out="take events from the files that run_trial writes, never from what a trial printed",
    reads=(RUN,),
)
def _output(evidence: AdapterEvidence) -> Finding:
    run = evidence.runs[RUN]
    sound = trials_by_act(run).get("sound", [])
    if not sound:
        return not_tested("no sound trial ran")
    problems = [f"{flag.text} (flag {flag.name})" for flag in run.record.flags if flag.name in BROKEN]
    planned = list(range(1, run.experiment.budget.epochs_per_trial + 1))
    for trial in sound:
        trained = [epoch.epoch for epoch in trial.attempts[-1].epochs]
        if trial.state != "completed" or trained != planned:
            text = f"trial {trial.trial} is {trial.state} with epochs {trained}, but {planned} were trained: {trial.cause}"
            problems.append(text)
    return judged(problems)


@run_check(
    "records.own-output",
    rule="the run's logs have what its trainings print",
    reason="who asks why a trial failed reads there, whatever the framework",
    way_out="let the processes of trials write where the coordinator does, or keep their logs below context.work_dir",
    reads=(RUN,),
)
def _own_output(run: FinishedRun) -> Iterator[str]:
    logs = [log for log in output.listed(run.folder) if "begin" not in log]  # of a trial: a part of another one
    count = sum(len(output.part(run.folder, log, 0, HALF_LINE, has_ended=True)["lines"]) for log in logs)
    printed = 2 * sum(attempt.started_ns is not None for trial in run.record.trials for attempt in trial.attempts)
    if count < printed:
        yield f"its trainings printed {printed} lines with {HALF_LINE!r}, of which its logs have {count}"
