"""Order and timing of the seven steps, and what becomes of failures in them."""

from __future__ import annotations

from collections.abc import Iterator

from tuneoff.measure.spans import partition_ns
from tuneoff.record.events import schema
from tuneoff.trust.check.evidence import AdapterEvidence, Made
from tuneoff.trust.check.model import Finding, check, judged, not_tested, of_runs

HONEST = ("honest-max", "random-2-workers-1")
DEFAULT = "default-sampler"


@check(
    "steps.order",
    rule="the seven steps are entered once each, in order, by one process, and undeploy is the last",
    reason="spans can be compared only if every run has the same seven steps in the same order",
    way_out="do the work of each step in its own method; call none of them from another, and start no second coordinator",
    reads=HONEST,
)
@of_runs(*HONEST)
def _order(made: Made) -> Iterator[str]:
    entered = [event.step for event in made.of(schema.StepStarted)]
    if entered != list(schema.STEPS):
        yield f"{made.name}: the steps were entered as {', '.join(entered)}"
    record = made.record
    moments = [moment for step in record.steps for moment in (step.started_ns, step.ended_ns) if moment is not None]
    if moments != sorted(moments):
        yield f"{made.name}: a step begins before the one before it has ended"
    if len(record.coordinators) != 1:
        yield f"{made.name}: {len(record.coordinators)} processes called the steps"


@check(
    "steps.succeed",
    rule="no step of an honest run fails (undeploy aside)",
    reason="a run of sound trials is done; what fails here is the adapter",
    way_out="read log.txt of the run (--keep DIR)",
    reads=(*HONEST, DEFAULT),
    has_time_limit=True,
    needs_all=False,
)
def _succeed(evidence: AdapterEvidence) -> Finding:
    return judged(
        f"{made.name}: step {step.step} failed: {step.error}"
        for made in evidence.some(*HONEST, DEFAULT)
        for step in made.record.steps
        if step.error is not None and step.step != "undeploy"
    )


@check(
    "steps.trials-inside",
    rule="trials begin after setup was entered and have ended when run_trials returns; JCT has no hole",
    reason="work of trials outside their step would be timed as something else",
    way_out="submit nothing before setup, and return from run_trials when the last trial has ended",
    reads=(*HONEST, "scripted"),
    needs_all=False,
)
@of_runs(*HONEST, "scripted")
def _inside(made: Made) -> Iterator[str]:
    record = made.record
    setup, trials = record.step("setup"), record.step("trial")
    if setup is None or trials is None or trials.ended_ns is None:
        yield f"{made.name}: step {'setup' if setup is None else 'trial'} did not come to its end"
        return
    uncertain = record.clock_uncertainty_ns
    for trial in record.trials:
        for attempt in trial.attempts:
            begun = attempt.submitted_ns if attempt.submitted_ns is not None else attempt.started_ns
            if begun is not None and begun + uncertain < setup.started_ns:
                yield f"{made.name}: trial {trial.trial} was begun {_ms(setup.started_ns - begun)} before setup"
            if attempt.ended_ns is not None and attempt.ended_ns - uncertain - attempt.uncertainty_ns > trials.ended_ns:
                yield f"{made.name}: trial {trial.trial} ended {_ms(attempt.ended_ns - trials.ended_ns)} after the step"
    unassigned = partition_ns(record)["unassigned"]
    if unassigned:
        yield f"{made.name}: {_ms(unassigned)} of the job completion time are in no part"


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:.0f} ms"


@check(
    "steps.failure-surfaces",
    rule="what goes wrong inside run_trials (context.submitted raises) fails the step, is not swallowed",
    reason="a failure that is swallowed becomes a result that looks sound",
    way_out="catch only what you can name, and let the rest leave run_trials",
    reads=("failed-trial",),
)
def _surfaces(evidence: AdapterEvidence) -> Finding:
    made = evidence.runs["failed-trial"]
    step = made.record.step("trial")
    if step is None or not made.was_planted:
        return not_tested("run_trials was not entered, or ended before a failure could be planted in it")
    if step.error is None:
        return judged(["run_trials returned as if nothing had happened, though a failure was raised inside it"])
    return judged([] if made.record.status == "failed" else [f"run_trials failed, but the run is {made.record.status}"])


CHECKS = (_order, _succeed, _inside, _surfaces)
