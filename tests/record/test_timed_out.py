"""Who ended a trial decides whether it timed out, never how its cause begins."""

from __future__ import annotations

import pytest

from builders.event_logs import Log, Writer
from builders.specs import make_spec
from tuneoff.measure.derived import compute_metrics
from tuneoff.record.derive import derive
from tuneoff.record.events import schema


def _one_trial() -> tuple[Log, Writer]:
    log = Log()
    log.step("deploy", 0, 1)
    log.submit("1", 2)
    worker = log.process("worker", 1)
    worker.start("1", 3, slot=0)
    for epoch in (1, 2):
        worker.epoch("1", epoch, 3 + epoch, 0.1 * epoch, reported=3.5 + epoch)
    return log, worker


@pytest.mark.parametrize("cause", ["TimeoutError: the data server did not answer", "silent for too long", "timed out"])
def test_a_trial_whose_own_error_speaks_of_time_has_failed(cause: str) -> None:
    log, worker = _one_trial()
    worker.end("1", 6, "failed", 2, cause=cause, charged="workload")
    run = derive(log.pairs(), make_spec())
    metrics = compute_metrics(run)
    assert (run.trials[0].state, run.trials[0].cause) == ("failed", cause)
    assert (metrics["trials.failed"].value, metrics["trials.timed_out"].value) == (1, 0)


def test_a_trial_that_was_killed_for_time_and_still_wrote_its_end_has_timed_out() -> None:
    log, worker = _one_trial()
    killed = {"trial": "1", "cause": "longer than 5 s", "charged": "workload", "limit": "time"}
    log.process("supervisor", 0).add(schema.TrialKilled, 8, **killed)
    worker.end("1", 8.1, "failed", 2)
    (trial,) = derive(log.pairs(), make_spec()).trials
    assert (trial.state, trial.cause) == ("timed_out", "longer than 5 s")
