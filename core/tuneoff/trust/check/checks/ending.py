"""Interruption, and what is left on the machine."""

from __future__ import annotations

from collections.abc import Iterator

from tuneoff.base.findings import Finding, check, judged, not_tested
from tuneoff.record.events import schema
from tuneoff.trust.check.evidence import AdapterCheck, AdapterEvidence, FinishedRun, run_check
from tuneoff.trust.check.footprint import Kind

RUN = "interrupted"
SECONDS = 15.0
LEAVE_SECONDS = 5.0  # from Ctrl-C to the beginning of undeploy; at 7 s the coordinator is killed
READ = ("honest-max", "random-2-workers-1", "default-sampler", "scripted", "faulty", "retried", "interrupted")


@check(
    "interruption.in-time",
    rule="Ctrl-C ends a run within 15 s",
    reason="Ctrl-C is how a matrix is paused",
    way_out="let Interrupted pass through every except clause, and keep undeploy short",
    reads=(RUN,),
    has_time_limit=True,
)
def _in_time(evidence: AdapterEvidence) -> Finding:
    run = evidence.runs[RUN]
    if run.end_seconds is None:
        return not_tested("no trial completed before the run ended, so it was not interrupted")
    problems = [] if run.record.status == "interrupted" else [f"the run is {run.record.status}: {run.record.reason}"]
    stopped = min((event.t for event in run.of(schema.RunStopped)), default=None)
    steps = [(process, event) for process, event in run.events if isinstance(event, schema.StepStarted)]
    calls = [(process, event.t) for process, event in steps if event.step == "undeploy"]
    if stopped is None or not calls:
        problems.append("undeploy was not called")
    elif len(run.record.coordinators) > 1 and all(process is not steps[0][0] for process, _ in calls):
        # one that was killed in undeploy is the matter of undeploy.in-time
        problems.append("the coordinator did not leave its step when it was asked to, and was killed")
    elif (seconds := (min(t for _, t in calls) - stopped) / 1e9) > LEAVE_SECONDS:
        problems.append(f"undeploy began {seconds:.1f} s after Ctrl-C, more than {LEAVE_SECONDS:g} s")
    if run.end_seconds > SECONDS:
        problems.append(f"it took {run.end_seconds:.1f} s, more than {SECONDS:g} s")
    return judged(problems, f"{run.end_seconds:.1f} s")


@run_check(
    "interruption.keeps-trials",
    rule="what had completed by then is kept",
    reason="a finished trial is never lost",
    way_out="leave the event files alone when the run is interrupted",
    reads=(RUN,),
)
def _keeps(run: FinishedRun) -> Iterator[str]:
    if not any(trial.state == "completed" for trial in run.record.trials):
        yield "a trial had completed before the interruption, but the record has none"


@run_check(
    "interruption.charged-to-user",
    rule="trials that it ended are cancelled and charged to no one else",
    reason="what the user ended is not a failure of the framework",
    way_out="write no trial_ended and no worker_died of your own for trials that end because the run does",
    reads=(RUN,),
)
def _charged(run: FinishedRun) -> Iterator[str]:
    for trial in run.record.trials:
        if trial.charged not in (None, "user"):
            yield f"trial {trial.trial} is charged to {trial.charged}: {trial.cause}"
        elif trial.used_ticket and trial.state not in ("completed", "cancelled"):
            yield f"trial {trial.trial} ran when the user interrupted it, and is {trial.state}: {trial.cause}"


@check(
    "ports.loopback-only",
    rule="nothing listens beyond this machine",
    reason="a benchmark may not open a machine to its network",
    way_out="let every server listen on 127.0.0.1",
    reads=READ,
    needs_all=False,
)
def _loopback(evidence: AdapterEvidence) -> Finding:
    listeners = {(run.name, item) for run in evidence.some(*READ) for item in run.listeners}
    beyond = {f"{name}: {item.address}:{item.port}" for name, item in listeners if not item.is_loopback}
    ports = len({item.port for _, item in listeners})
    return judged(sorted(beyond), f"{ports} ports seen, all on loopback" if ports else "no port was seen")


def _left(name: str, kind: Kind, rule: str, reason: str, way_out: str) -> AdapterCheck:
    @run_check(f"left.{name}", rule=rule, reason=reason, way_out=way_out, reads=READ)
    def nothing(run: FinishedRun) -> Iterator[str]:
        return (f"{run.name}: {leftover.text}" for leftover in run.leftovers if leftover.kind == kind)

    return nothing


LEFT = (
    _left(
        "processes",
        "process",
        "no process outlives the run",
        "a leftover process takes processors from the next run",
        "end what deploy and later steps started, in undeploy",
    ),
    _left(
        "ports",
        "port",
        "no port stays open",
        "an open port collides with the next run",
        "close servers in undeploy, and end their processes",
    ),
    _left(
        "shared-memory",
        "shared memory",
        "nothing in /dev/shm",
        "shared memory stays until it is removed",
        "unlink it in undeploy",
    ),
    _left(
        "temporary-files",
        "temporary file",
        "nothing in the temporary folder",
        "temporary files of many runs fill the disk",
        "put temporary files under context.temporary_dir, and context.remember what lies elsewhere",
    ),
    _left(
        "home-files",
        "home file",
        "nothing in the home folder",
        "what one run leaves in the home folder the next one may read",
        "point the framework at context.work_dir, by its options or its environment variables",
    ),
    _left(
        "outside",
        "outside",
        "nothing in a cluster",
        "what is left in a cluster costs money, and goes on after the run",
        "write context.outside before something is made outside this machine, and remove both in undeploy",
    ),
)
