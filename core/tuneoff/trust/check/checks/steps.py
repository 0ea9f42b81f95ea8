"""Order and timing of the seven steps, what becomes of failures in them; `undeploy` again, in a fresh process, in time."""

from __future__ import annotations

from collections.abc import Iterator

from tuneoff.base.findings import Finding, check, judged, not_tested
from tuneoff.measure.spans import partition_ns
from tuneoff.record.events import schema
from tuneoff.run.lifecycle import INTERRUPTED_SECONDS
from tuneoff.trust.check.evidence import AdapterEvidence, FinishedRun, run_check
from tuneoff.trust.check.fault_injection import RAISED

HONEST = ("honest-max", "random-2-workers-1")
DEFAULT = "default-sampler"
FAILED = tuple(f"failed-{step}" for step in ("deploy", "setup", "trial", "collect", "test", "metrics", "undeploy"))
BASE = "honest-max"
SLACK_SECONDS = 1.0
PLANTED = "planted in step undeploy"  # of the wrapper, not of the adapter


@run_check(
    "steps.order",
    rule="the seven steps are entered once each, in order, by one process, and undeploy is the last",
    reason="spans can be compared only if every run has the same seven steps in the same order",
    way_out="do the work of each step in its own method; call none of them from another, and start no second coordinator",
    reads=HONEST,
)
def _order(run: FinishedRun) -> Iterator[str]:
    entered = [event.step for event in run.of(schema.StepStarted)]
    if entered != list(schema.STEPS):
        yield f"{run.name}: the steps were entered as {', '.join(entered)}"
    record = run.record
    moments = [moment for step in record.steps for moment in (step.started_ns, step.ended_ns) if moment is not None]
    if moments != sorted(moments):
        yield f"{run.name}: a step begins before the one before it has ended"
    if len(record.coordinators) != 1:
        yield f"{run.name}: {len(record.coordinators)} processes called the steps"


@run_check(
    "steps.succeed",
    rule="no step of an honest run fails (undeploy aside)",
    reason="a run of sound trials is done; what fails here is the adapter",
    way_out="read log.txt of the run (--keep DIR)",
    reads=(*HONEST, DEFAULT),
    has_time_limit=True,
)
def _succeed(run: FinishedRun) -> Iterator[str]:
    for step in run.record.steps:
        if step.error is not None and step.step != "undeploy":
            yield f"{run.name}: step {step.step} failed: {step.error}"


@run_check(
    "steps.trials-inside",
    rule="trials begin after setup was entered and have ended when run_trials returns; JCT has no hole",
    reason="trial work outside its step is timed as something else",
    way_out="submit nothing before setup, and return from run_trials when the last trial has ended",
    reads=(*HONEST, "scripted"),
)
def _inside(run: FinishedRun) -> Iterator[str]:
    record = run.record
    setup, trials = record.step("setup"), record.step("trial")
    if setup is None or trials is None or trials.ended_ns is None:
        yield f"{run.name}: step {'setup' if setup is None else 'trial'} did not end"
        return
    uncertain = record.clock_uncertainty_ns
    for trial in record.trials:
        for attempt in trial.attempts:
            begun = attempt.submitted_ns if attempt.submitted_ns is not None else attempt.started_ns
            if begun is not None and begun + uncertain < setup.started_ns:
                yield f"{run.name}: trial {trial.trial} was begun {_ms(setup.started_ns - begun)} before setup"
            if attempt.ended_ns is not None and attempt.ended_ns - uncertain - attempt.uncertainty_ns > trials.ended_ns:
                yield f"{run.name}: trial {trial.trial} ended {_ms(attempt.ended_ns - trials.ended_ns)} after the step"
    unassigned = partition_ns(record)["unassigned"]
    if unassigned:
        yield f"{run.name}: {_ms(unassigned)} of the job completion time are in no part"


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:.0f} ms"


@check(
    "steps.failure-surfaces",
    rule="a failure inside run_trials (context.submitted raises) fails the step and is not swallowed",
    reason="a swallowed failure becomes a result that looks sound",
    way_out="catch only exceptions that you can name; let the others leave run_trials",
    reads=("failed-trial",),
)
def _surfaces(evidence: AdapterEvidence) -> Finding:
    run = evidence.runs["failed-trial"]
    step = run.record.step("trial")
    if step is None or not (run.folder / RAISED).exists():
        return not_tested("run_trials was not entered, or ended before a failure could be planted in it")
    if step.error is None:
        return judged(["run_trials returned normally, though a failure was raised inside it"])
    return judged([] if run.record.status == "failed" else [f"run_trials failed, but the run is {run.record.status}"])


@check(
    "undeploy.after-failure",
    rule="after a failure in each step undeploy runs to its end and leaves no more than usual",
    reason="what a failed run leaves disturbs the next one",
    way_out="record what is started before it starts, and let undeploy remove what exists of it",
    reads=(BASE, *FAILED),
    has_time_limit=True,
)
def _after_failure(evidence: AdapterEvidence) -> Finding:
    return judged(problem for run in evidence.some(*FAILED) for problem in _problems(evidence, run))


def _problems(evidence: AdapterEvidence, run: FinishedRun) -> Iterator[str]:
    usual = {leftover.kind for leftover in evidence.runs[BASE].leftovers}  # what every run leaves is the matter of left.*
    if not _ended(run):
        yield f"{run.name}: undeploy did not end"
    yield from _errors(run)
    yield from (
        f"{run.name}: left a {leftover.kind}: {leftover.text}" for leftover in run.leftovers if leftover.kind not in usual
    )


def _ended(run: FinishedRun) -> list[schema.StepEnded]:
    """Return the ends of all calls of undeploy: after one that failed or was killed a fresh process calls it again."""
    return [event for event in run.of(schema.StepEnded) if event.step == "undeploy"]


def _errors(run: FinishedRun) -> Iterator[str]:
    for event in _ended(run):
        if event.error is not None and PLANTED not in event.error:
            yield f"{run.name}: undeploy failed: {event.error}"


@run_check(
    "undeploy.twice",
    rule="a second call on the same instance does nothing and does not fail",
    reason="core calls undeploy again when the progress of the first call is unknown",
    way_out="forget what has been removed, and remove nothing twice",
    reads=("undeployed-twice",),
    has_time_limit=True,
)
def _twice(run: FinishedRun) -> Iterator[str]:
    if not _ended(run):
        yield "called a second time, undeploy did not end"
    yield from _errors(run)


@check(
    "undeploy.fresh-process",
    rule="works on a fresh instance, after the coordinator was killed",
    reason="after a killed coordinator a fresh instance must remove everything",
    way_out="let undeploy rely on nothing but the context and the files of the run",
    reads=(BASE, "coordinator-killed"),
    has_time_limit=True,
)
def _fresh(evidence: AdapterEvidence) -> Finding:
    run = evidence.runs["coordinator-killed"]
    if run.end_seconds is None:
        return not_tested("no trial completed before the run ended, so its coordinator was not killed")
    return judged(_problems(evidence, run))


@run_check(
    "undeploy.in-time",
    rule="ends within its limit, also after Ctrl-C",
    reason="a run that hangs at its end blocks the whole matrix",
    way_out="limit every wait in undeploy: self.undeploy_seconds in all",
    reads=(BASE, "interrupted"),
    has_time_limit=True,
)
def _in_time(run: FinishedRun) -> Iterator[str]:
    """Yield each call of undeploy that was killed, or took too long."""
    limit = run.experiment.timeouts.undeploy_seconds
    if run.name == "interrupted":
        limit = min(limit, INTERRUPTED_SECONDS)
    began: list[int] = []
    for event in run.of(schema.Event):
        if isinstance(event, schema.StepStarted) and event.step == "undeploy":
            began.append(event.t)
        elif isinstance(event, schema.StepEnded) and event.step == "undeploy" and began:
            seconds = (event.t - began.pop()) / 1e9
            if seconds > limit + SLACK_SECONDS:
                yield f"{run.name}: undeploy took {seconds:.1f} s, more than {limit:g} s"
    if began:  # a fresh process calls it again only when the one before it is gone
        yield f"{run.name}: undeploy did not end within {limit:g} s, and was killed"
