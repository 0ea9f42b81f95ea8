"""Waste of a run that was killed whole: nobody saw the end of its attempts, so what they wasted is at least what is known."""

from __future__ import annotations

import pytest

from builders.event_logs import Log, Writer
from builders.specs import make_spec
from tuneoff.measure.derived import with_metrics
from tuneoff.measure.waste import LOWER_BOUND_FLAG
from tuneoff.record.derive import derive
from tuneoff.record.endings import KILLED
from tuneoff.record.events import schema
from tuneoff.record.run_record import RunRecord


def _begun() -> tuple[Log, Writer]:
    """Return a run whose only trial is in its second epoch: its last event is at 4.5 s."""
    log = Log()
    log.step("deploy", 0, 1)
    log.submit("1", 2)
    worker = log.process("worker", 1)
    worker.start("1", 3, slot=0)
    worker.epoch("1", 1, 4, 0.5, reported=4.5)
    return log, worker


def _flags(run: RunRecord) -> dict[str, int]:
    return {flag.name: flag.count for flag in run.flags}


def test_the_waste_of_a_killed_run_is_a_lower_bound() -> None:
    log, _ = _begun()
    run = with_metrics(derive(log.pairs(), make_spec(), ruling=KILLED))
    (attempt,) = run.trials[0].attempts
    assert attempt.ended_by == "derivation"
    assert _flags(run) == {LOWER_BOUND_FLAG: 1}
    for name in ("waste.default.time", "waste.default.core_time"):
        assert (run.metrics[name].kind, run.metrics[name].value) == ("estimated", 1000.0), "3 to 4 s: 0.5 s waited in report"
        assert "lower bound" in run.metrics[name].source
    assert run.metrics["waste.post_goal.time"].value is None
    assert run.metrics["trial_execution.mean"].kind == "derived"


@pytest.mark.parametrize("seen_by", ["trial", "supervisor"])
def test_waste_whose_end_was_seen_is_no_lower_bound(seen_by: str) -> None:
    log, worker = _begun()
    if seen_by == "trial":
        worker.end("1", 9, "failed", 1, cause="ValueError: x", charged="workload")
    else:
        log.process("supervisor", 0).add(schema.TrialEnded, 9, trial="1", state="failed", epochs=1, by="supervisor")
    run = with_metrics(derive(log.pairs(), make_spec(), ruling=KILLED))
    assert _flags(run) == {}
    assert (run.metrics["waste.default.time"].kind, run.metrics["waste.default.time"].value) == ("derived", 5500.0)


def test_a_trial_that_never_started_wastes_nothing_unseen() -> None:
    log = Log()
    log.step("deploy", 0, 1)
    log.submit("1", 2)
    assert _flags(with_metrics(derive(log.pairs(), make_spec(), ruling=KILLED))) == {}
