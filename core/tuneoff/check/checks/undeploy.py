"""`undeploy` after failures, again, in a fresh process, and in time."""

from __future__ import annotations

from collections.abc import Iterator

from tuneoff.check.evidence import Evidence, Made
from tuneoff.check.footprint import Kind
from tuneoff.check.model import Check, Finding, judged
from tuneoff.lifecycle.run import INTERRUPTED_SECONDS

FAILED = tuple(f"failed-{step}" for step in ("deploy", "setup", "trial", "collect", "test", "metrics", "undeploy"))
BASE = "honest-max"
SLACK_SECONDS = 1.0


def _after_failure(evidence: Evidence) -> Finding:
    usual = {left.kind for left in evidence.runs[BASE].left}  # what every run leaves is the matter of left.*
    return judged(problem for name in FAILED for problem in _problems(evidence.runs[name], usual))


def _problems(made: Made, usual: set[Kind]) -> Iterator[str]:
    step = made.record.step("undeploy")
    if step is None or step.ended_ns is None:
        yield f"{made.name}: undeploy did not come to its end"
    elif step.error is not None and "planted in step undeploy" not in step.error:
        yield f"{made.name}: undeploy failed: {step.error}"
    yield from (f"{made.name}: left a {left.kind}: {left.text}" for left in made.left if left.kind not in usual)


def _twice(evidence: Evidence) -> Finding:
    step = evidence.record("undeployed-twice").step("undeploy")
    error = step.error if step is not None else "it was never called"
    return judged([f"called a second time, undeploy failed: {error}"] if error else [])


def _fresh(evidence: Evidence) -> Finding:
    made = evidence.runs["coordinator-killed"]
    record = made.record
    step = record.step("undeploy")
    if step is None:
        return judged(["nobody called undeploy after the coordinator had been killed"])
    if step.error is not None or step.ended_ns is None:
        return judged([f"in a fresh process undeploy failed: {step.error or 'it did not come to its end'}"])
    usual = {left.kind for left in evidence.runs[BASE].left}
    return judged(
        f"after undeploy in a fresh process a {left.kind} is left: {left.text}" for left in made.left if left.kind not in usual
    )


def _in_time(evidence: Evidence) -> Finding:
    problems = []
    for name in (BASE, "interrupted"):
        made = evidence.runs[name]
        limit = made.experiment.timeouts.undeploy_seconds
        step = made.record.step("undeploy")
        if step is None or step.ended_ns is None or "undeploy took longer" in (made.record.reason or ""):
            problems.append(f"{name}: undeploy did not end within {limit:g} s")
            continue
        limit = min(limit, INTERRUPTED_SECONDS) if name == "interrupted" else limit
        seconds = (step.ended_ns - step.started_ns) / 1e9
        if seconds > limit + SLACK_SECONDS:
            problems.append(f"{name}: undeploy took {seconds:.1f} s, more than {limit:g} s")
    return judged(problems)


CHECKS = (
    Check(
        id="undeploy.after-failure",
        reason="what a failed run leaves disturbs the next one",
        way_out="write down what is started before it is started, and let undeploy remove whatever of it is there",
        reads=(BASE, *FAILED),
        judge=_after_failure,
    ),
    Check(
        id="undeploy.twice",
        reason="core calls undeploy again when it cannot know how far the first call came",
        way_out="forget what has been removed, and remove nothing twice",
        reads=("undeployed-twice",),
        judge=_twice,
    ),
    Check(
        id="undeploy.fresh-process",
        reason="after a killed coordinator an instance that did nothing else has to remove everything",
        way_out="let undeploy rely on nothing but the context and the files of the run",
        reads=(BASE, "coordinator-killed"),
        judge=_fresh,
    ),
    Check(
        id="undeploy.in-time",
        reason="a run that hangs at its end holds up the whole matrix",
        way_out="give every wait in undeploy a limit: self.undeploy_seconds is all it may take",
        reads=(BASE, "interrupted"),
        judge=_in_time,
    ),
)
