"""Waste of retries that went on from a checkpoint, and of a run that was killed whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from builders.event_logs import Log
from builders.specs import make_spec
from tuneoff.experiment.spec import Budget
from tuneoff.measure.derived import with_metrics
from tuneoff.measure.waste import LOWER_BOUND_FLAG
from tuneoff.record.derive import derive
from tuneoff.record.endings import KILLED
from tuneoff.record.events import schema
from tuneoff.record.run_record import RunRecord

FIRST = {1: 4.0, 2: 6.0}  # epochs of the first attempt, and when they ended (s)


@dataclass(frozen=True)
class Again:
    """A later attempt: from when to when, how many epochs it restored (half a second after its start), when it trained others."""

    start: float
    end: float
    restored: int
    trained: Mapping[int, float] = field(default_factory=dict)
    state: schema.EndState | None = None  # None: its process dies


def run_of(*again: Again, first: Mapping[int, float] = FIRST, is_best: bool = False, stop: int = 0) -> RunRecord:
    """Return a run of one trial, which starts at 3 s, trains the epochs of `first` and dies a second after the last one."""
    log = Log()
    log.step("deploy", 0, 1)
    attempts = (Again(3, max(first.values()) + 1, 0, first), *again)
    for number, one in enumerate(attempts, start=1):
        log.submit("1", one.start - 0.5, attempt=number)
        worker = log.process("worker", one.start - 0.5)
        worker.start("1", one.start, slot=0, attempt=number)
        for epoch in range(1, one.restored + 1):
            worker.epoch("1", epoch, one.start + 0.5, epoch / 10, reported=one.start + 0.5, attempt=number, restored=True)
        for epoch, at in one.trained.items():
            worker.epoch("1", epoch, at, epoch / 10, reported=at, attempt=number)
        epochs = one.restored + len(one.trained)
        if one.state is None:
            log.coordinator.add(schema.WorkerDied, one.end, trial="1", attempt=number, cause="killed by signal 9", exit_code=-9)
        else:
            why: dict[str, Any] = {"cause": "x", "charged": "workload"} if one.state == "failed" else {}
            worker.end("1", one.end, one.state, epochs, attempt=number, **why)
    if stop:
        log.coordinator.add(schema.StopDecided, 99, trial="1", epoch=stop)
    if is_best:
        log.coordinator.add(schema.BestKnown, 99, trial="1", value=0.3)
    return with_metrics(derive(log.pairs(), make_spec(budget=Budget(trials=1, epochs_per_trial=3)), ruling=KILLED))


def milliseconds(run: RunRecord, name: str) -> float:
    found = run.metrics[name].value
    assert found is not None
    return float(found)


DONE = Again(8, 10, 2, {3: 10}, "completed")


@pytest.mark.parametrize(
    ("again", "is_best", "wasted"),
    [
        ([DONE], True, 1000),  # 6 to 7 s
        ([replace(DONE, restored=1, trained={2: 9, 3: 10})], True, 3000),  # 4 to 7 s
        ([replace(DONE, restored=0, trained={1: 8.5, 2: 9, 3: 10})], True, 4000),  # all of the first attempt
        ([DONE], False, 1000),
        ([Again(8, 10, 2, {}, "failed")], False, 6000),
        ([Again(7.5, 7.8, 0), DONE], True, 1300),  # the second attempt died before it restored anything
        ([Again(7.5, 8, 1), replace(DONE, start=8.5)], True, 1500),  # and here, in the middle of it
    ],
)
def test_what_a_retry_took_over_is_wasted_only_if_the_retry_is(again: list[Again], is_best: bool, wasted: float) -> None:
    assert milliseconds(run_of(*again, is_best=is_best), "waste.default.time") == pytest.approx(wasted)


def test_an_epoch_that_a_retry_took_over_was_not_trained_after_the_decision_to_stop() -> None:
    run = run_of(Again(8, 10, 2, {3: 9}, "failed"), stop=1)
    assert run.metrics["stop.epochs_after_decision"].value == 1


def test_the_waste_of_a_killed_run_is_a_lower_bound() -> None:
    log = Log()
    log.step("deploy", 0, 1)
    log.submit("1", 2)
    worker = log.process("worker", 1)
    worker.start("1", 3, slot=0)
    worker.epoch("1", 1, 4, 0.5, reported=4.5)  # its last event
    run = with_metrics(derive(log.pairs(), make_spec(), ruling=KILLED))
    (attempt,) = run.trials[0].attempts
    assert attempt.ended_by == "derivation"
    assert {flag.name: flag.count for flag in run.flags} == {LOWER_BOUND_FLAG: 1}
    for name in ("waste.default.time", "waste.default.core_time"):
        assert (run.metrics[name].kind, run.metrics[name].value) == ("estimated", 1000.0), "3 to 4 s: 0.5 s waited in report"
        assert "lower bound" in run.metrics[name].source
    assert run.metrics["waste.post_goal.time"].value is None
    assert run.metrics["trial_execution.mean"].kind == "derived"
