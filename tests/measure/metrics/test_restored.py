"""A retry that went on from its trial's checkpoint: what was trained up to there is neither lost nor counted twice."""

from __future__ import annotations

from typing import Any

import pytest

from builders.event_logs import Log
from builders.specs import make_spec
from tuneoff.experiment.spec import Budget
from tuneoff.measure.derived import with_metrics
from tuneoff.measure.incumbent import incumbents
from tuneoff.record.derive import derive
from tuneoff.record.endings import KILLED
from tuneoff.record.events import schema
from tuneoff.record.run_record import RunRecord


def retried(restored: int, state: schema.EndState = "completed", is_best: bool = True, epochs: int = 3) -> RunRecord:
    """Return a run of one trial: it trains epochs at 4 and 6 s and dies at 7 s; the retry starts at 8 s, and ends at 10 s."""
    log = Log()
    log.step("deploy", 0, 1)
    log.submit("1", 2)
    first = log.process("worker", 1)
    first.start("1", 3, slot=0)
    first.epoch("1", 1, 4, 0.1, reported=4)
    first.epoch("1", 2, 6, 0.2, reported=6)
    log.coordinator.add(schema.WorkerDied, 7, trial="1", attempt=1, cause="killed by signal 9", exit_code=-9)
    log.submit("1", 7.5, attempt=2)
    second = log.process("worker", 7.5)
    second.start("1", 8, slot=0, attempt=2)
    for epoch in range(1, epochs + 1):
        more = {"restored": True} if epoch <= restored else {}
        at = 8.5 if more else 7.0 + epoch
        second.epoch("1", epoch, at, epoch / 10, reported=at, attempt=2, **more)
    why: dict[str, Any] = {"cause": "x", "charged": "workload"} if state == "failed" else {}
    second.end("1", 10, state, epochs, attempt=2, **why)
    if is_best:
        log.coordinator.add(schema.BestKnown, 10, trial="1", value=0.3)
    spec = make_spec(budget=Budget(trials=1, epochs_per_trial=3))
    return with_metrics(derive(log.pairs(), spec, verdict=KILLED))


def milliseconds(run: RunRecord, name: str) -> float:
    found = run.metrics[name].value
    assert found is not None
    return float(found)


@pytest.mark.parametrize(
    ("run", "strict", "non_best"),
    [
        (retried(restored=2), 1000, 1000),  # 6 to 7 s
        (retried(restored=1), 3000, 3000),  # 4 to 7 s
        (retried(restored=0), 4000, 4000),  # all of the first attempt
        (retried(restored=2, is_best=False), 1000, 6000),
        (retried(restored=2, state="failed", is_best=False, epochs=2), 6000, 6000),
    ],
)
def test_what_a_retry_took_over_is_wasted_only_if_the_retry_is(run: RunRecord, strict: float, non_best: float) -> None:
    assert milliseconds(run, "waste.strict.time") == strict
    assert milliseconds(run, "waste.non_best.time") == non_best


def test_restored_epochs_are_not_trained_twice() -> None:
    run = retried(restored=2)
    assert [trial.epochs_trained for trial in run.trials] == [3]
    assert incumbents(run)[-1].epochs == 3
    assert run.trials[0].value == 0.3


def test_what_pruning_saved_is_reckoned_by_epochs_that_were_trained() -> None:
    run = retried(restored=1, state="pruned", is_best=False, epochs=2)
    assert milliseconds(run, "pruning.saved_time") == 1000  # 8 to 9 s, for one epoch; the third was left out
    assert run.metrics["pruning.saved_time"].kind == "estimated"
    run = retried(restored=2, state="pruned", is_best=False, epochs=2)
    assert run.metrics["pruning.saved_time"].value is None
