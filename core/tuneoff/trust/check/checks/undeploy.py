"""`undeploy` after failures, again, in a fresh process, and in time."""

from __future__ import annotations

from collections.abc import Iterator

from tuneoff.record.events import schema
from tuneoff.run.lifecycle.run import INTERRUPTED_SECONDS
from tuneoff.trust.check.evidence import AdapterEvidence, Made
from tuneoff.trust.check.footprint import Kind
from tuneoff.trust.check.model import Finding, check, judged, not_tested, of_runs

FAILED = tuple(f"failed-{step}" for step in ("deploy", "setup", "trial", "collect", "test", "metrics", "undeploy"))
BASE = "honest-max"
SLACK_SECONDS = 1.0
PLANTED = "planted in step undeploy"  # of the wrapper, not of the adapter


@check(
    "undeploy.after-failure",
    rule="after a failure in each step undeploy runs to its end, and more is not left than else",
    reason="what a failed run leaves disturbs the next one",
    way_out="write down what is started before it is started, and let undeploy remove whatever of it is there",
    reads=(BASE, *FAILED),
    has_time_limit=True,
)
def _after_failure(evidence: AdapterEvidence) -> Finding:
    usual = {left.kind for left in evidence.runs[BASE].left}  # what every run leaves is the matter of left.*
    return judged(problem for made in evidence.some(*FAILED) for problem in _problems(made, usual))


def _problems(made: Made, usual: set[Kind]) -> Iterator[str]:
    if not _ended(made):
        yield f"{made.name}: undeploy did not come to its end"
    yield from _errors(made)
    yield from (f"{made.name}: left a {left.kind}: {left.text}" for left in made.left if left.kind not in usual)


def _ended(made: Made) -> list[schema.StepEnded]:
    """Return the ends of all calls of undeploy: after one that failed or was killed a fresh process calls it again."""
    return [event for event in made.of(schema.StepEnded) if event.step == "undeploy"]


def _errors(made: Made) -> Iterator[str]:
    for event in _ended(made):
        if event.error is not None and PLANTED not in event.error:
            yield f"{made.name}: undeploy failed: {event.error}"


@check(
    "undeploy.twice",
    rule="a second call on the same instance does nothing and does not fail",
    reason="core calls undeploy again when it cannot know how far the first call came",
    way_out="forget what has been removed, and remove nothing twice",
    reads=("undeployed-twice",),
    has_time_limit=True,
)
def _twice(evidence: AdapterEvidence) -> Finding:
    made = evidence.runs["undeployed-twice"]
    never = [] if _ended(made) else ["called a second time, undeploy did not come to its end"]
    return judged([*never, *_errors(made)])


@check(
    "undeploy.fresh-process",
    rule="works on an instance that did nothing else, after the coordinator was killed",
    reason="after a killed coordinator an instance that did nothing else has to remove everything",
    way_out="let undeploy rely on nothing but the context and the files of the run",
    reads=(BASE, "coordinator-killed"),
    has_time_limit=True,
)
def _fresh(evidence: AdapterEvidence) -> Finding:
    made = evidence.runs["coordinator-killed"]
    if made.end_seconds is None:
        return not_tested("no trial completed before the run ended, so its coordinator was not killed")
    usual = {left.kind for left in evidence.runs[BASE].left}
    return judged(_problems(made, usual))


@check(
    "undeploy.in-time",
    rule="ends within its limit, also after Ctrl-C",
    reason="a run that hangs at its end holds up the whole matrix",
    way_out="give every wait in undeploy a limit: self.undeploy_seconds is all it may take",
    reads=(BASE, "interrupted"),
    has_time_limit=True,
)
@of_runs(BASE, "interrupted")
def _in_time(made: Made) -> Iterator[str]:
    """Yield each call of undeploy that was killed, or took too long."""
    limit = made.experiment.timeouts.undeploy_seconds
    if made.name == "interrupted":
        limit = min(limit, INTERRUPTED_SECONDS)
    began: list[int] = []
    for event in made.of(schema.Event):
        if isinstance(event, schema.StepStarted) and event.step == "undeploy":
            began.append(event.t)
        elif isinstance(event, schema.StepEnded) and event.step == "undeploy" and began:
            seconds = (event.t - began.pop()) / 1e9
            if seconds > limit + SLACK_SECONDS:
                yield f"{made.name}: undeploy took {seconds:.1f} s, more than {limit:g} s"
    if began:  # a fresh process calls it again only when the one before it is gone
        yield f"{made.name}: undeploy did not end within {limit:g} s, and was killed"


CHECKS = (_after_failure, _twice, _fresh, _in_time)
