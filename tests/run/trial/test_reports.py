"""Of which epochs a framework is told, what of it stands in the events, and how long a trial waited for that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.event_logs import T0, Log, ns
from builders.specs import make_spec
from trial_runs import events_of, run, trial_context
from tuneoff.base.capabilities import Reports
from tuneoff.measure.derived import with_metrics
from tuneoff.measure.spans import busy_ns, waits
from tuneoff.record.derive import derive
from tuneoff.record.events import schema
from tuneoff.record.run_record import RunRecord
from tuneoff.run.trial.run_trial import Decision, TrialOutcome

RISES = {"rises": True}  # the loss: 0.6, 1.2, 1.8, so the first epoch is the best


class Told:
    """A `report` that keeps what it was told."""

    def __init__(self, answer: Decision = Decision.CONTINUE) -> None:
        self.answer, self.calls = answer, list[tuple[int, float]]()

    def __call__(self, epoch: int, metrics: Mapping[str, float]) -> Decision:
        self.calls.append((epoch, metrics["loss"]))
        return self.answer


@pytest.mark.parametrize(
    ("reports", "calls"),
    [("every_epoch", [(1, 0.6), (2, 1.2), (3, 0.6 * 3)]), ("at_end", [(3, 0.6)]), ("none", [])],
)
def test_a_framework_is_told_of_what_its_run_says(tmp_path: Path, reports: Reports, calls: list[tuple[int, float]]) -> None:
    told = Told()
    outcome = run(trial_context(tmp_path, reports=reports, workload_options=RISES), report=told)
    assert outcome == TrialOutcome(state="completed", epochs=3, value=0.6, best_epoch=1)  # whatever it was told
    assert told.calls == calls
    epochs = list(events_of(tmp_path, schema.Epoch))
    assert [event.epoch for event in epochs if event.is_reported] == [epoch for epoch, _ in calls]
    assert [event.epoch for event in events_of(tmp_path, schema.Reported)] == [epoch for epoch, _ in calls]


@pytest.mark.parametrize(("reports", "calls"), [("every_epoch", [(1, 0.6), (2, 1.2)]), ("at_end", [(2, 0.6)]), ("none", [])])
def test_a_training_that_ends_by_itself_is_told_at_its_own_end(
    tmp_path: Path, reports: Reports, calls: list[tuple[int, float]]
) -> None:
    told = Told()
    outcome = run(trial_context(tmp_path, reports=reports, workload_options={**RISES, "last": 2}), report=told)
    assert (outcome.state, outcome.epochs) == ("completed", 2)
    assert told.calls == calls


def test_a_stop_in_answer_to_the_end_stops_nothing(tmp_path: Path) -> None:
    outcome = run(trial_context(tmp_path, reports="at_end"), report=Told(Decision.STOP))
    assert (outcome.state, outcome.epochs) == ("completed", 3)


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"workload_options": {"nan_at": 2}}, "failed"),
        ({"workload_options": {"memory_error_at": 2}}, "failed"),
        ({"epochs_total": 2}, "cancelled"),
    ],
)
def test_a_trial_that_does_not_end_well_has_no_end_to_tell_of(tmp_path: Path, changes: Mapping[str, Any], state: str) -> None:
    told = Told()
    assert run(trial_context(tmp_path, reports="at_end", **changes), report=told).state == state
    assert told.calls == []


def test_an_epoch_that_an_earlier_attempt_trained_counts_for_the_best_one(tmp_path: Path) -> None:
    told = Told()
    context = trial_context(tmp_path, reports="at_end", retries=1, workload="trial_runs:Walk")
    assert run(context, report=Told()).state == "completed"
    again = run(context, report=told, attempt=2)
    assert again.value is not None
    assert told.calls == [(3, again.value)]


def derived(reports: Reports, *, ends: bool) -> RunRecord:
    """Return the record of a trial on one slot: epochs at 2 s and 4 s, killed or ended at 6 s."""
    spec = replace(make_spec(), reports=reports)
    log = Log()
    log.step("deploy", 0, 1)
    log.submit("t0", 1)
    worker = log.process("worker", 0.5)
    worker.start("t0", 1, 0)
    told = reports == "every_epoch"
    worker.epoch("t0", 1, 2, reported=2.25 if told else None, is_reported=told)
    worker.epoch("t0", 2, 4, reported=None, is_reported=told)
    if ends:  # by itself: told at 5.5 s, for 0.25 s
        worker.add(schema.Reported, 5.75, trial="t0", epoch=2, began=T0 + ns(5.5))
        worker.end("t0", 6, "completed", 2, ended_early=True)
    else:
        log.coordinator.add(schema.WorkerDied, 6, trial="t0", cause="killed", exit_code=-9)
    return derive(log.pairs(), spec)


def test_a_trial_waits_in_the_reports_that_there_are_and_what_follows_its_last_epoch_is_no_wait() -> None:
    records = [derived("none", ends=False), derived("at_end", ends=True), derived("every_epoch", ends=False)]
    attempts = [record.trials[0].attempts[0] for record in records]
    assert [[(end - start) / 1e9 for start, end in waits(attempt)] for attempt in attempts] == [[], [0.25], [0.25, 2.0]]
    assert busy_ns(attempts[0]) == busy_ns(attempts[2]) + 2.25e9  # the last one died after an epoch
    assert [epoch.is_reported for epoch in attempts[1].epochs] == [False, True]
    metrics = [with_metrics(record).metrics for record in records]
    assert [of["overhead.report"].value for of in metrics] == [0.0, 250.0, 2250.0]
    each = metrics[0]["overhead.per_report"]
    assert (each.value, bool(each.reason_if_null)) == (None, True)
    assert metrics[2]["overhead.per_report"].value is not None
