from __future__ import annotations

from typing import Any

import pytest

from builders.event_logs import Log, example_a, example_b, ns
from builders.specs import make_spec
from tuneoff.experiment.spec import Objective, RunSpec
from tuneoff.record.derive import best_trial, derive
from tuneoff.record.events import schema
from tuneoff.record.run_record import RunRecord, TrialRecord


def one_trial(*, epochs: int = 2) -> tuple[Log, Any]:
    """A log with trial "1" submitted and started by one worker."""
    log = Log()
    log.step("deploy", 0, 1)
    log.submit("1", 2)
    worker = log.process("worker", 1)
    worker.start("1", 3, slot=0)
    for epoch in range(1, epochs + 1):
        worker.epoch("1", epoch, 3 + epoch, 0.1 * epoch, reported=3.5 + epoch)
    return log, worker


def _of_execution(log: Log, execution: str) -> Log:
    log.execution = execution
    return log


def trial(log: Log, spec: RunSpec | None = None) -> TrialRecord:
    (record,) = derive(log.pairs(), spec or make_spec()).trials
    return record


def flags(run: RunRecord) -> dict[str, int]:
    return {flag.name: flag.count for flag in run.flags}


def test_the_worked_examples_derive_without_flags_and_as_done() -> None:
    for log, spec in (example_a(), example_b()):
        run = derive(log.pairs(), spec)
        assert (run.status, run.flags) == ("done", ())
        assert run.best is not None
        assert run.best.core_trial == run.best.trial == "1"


def test_ties_are_broken_by_validation_loss_and_then_by_canonical_hash() -> None:
    objective = Objective(metric="validation_accuracy", mode="max")

    def record(name: str, value: float, loss: float | None, digest: str) -> TrialRecord:
        return TrialRecord(
            trial=name, configuration={}, digest=digest, state="completed", value=value, value_epoch=1, tie_loss=loss
        )

    trials = [record("a", 0.9, 0.5, "b"), record("b", 0.9, 0.4, "d"), record("c", 0.9, 0.4, "c"), record("d", 0.8, 0.1, "a")]
    best = best_trial(objective, trials)
    assert best is not None
    assert best.trial == "c"
    assert best == best_trial(objective, trials[::-1])


def test_a_refused_trial_is_no_trial() -> None:
    log, worker = one_trial()
    worker.end("1", 9, "completed", 4)
    log.submit("2", 9)
    worker.add(schema.TrialRefused, 9.1, trial="2", reason="trials")
    run = derive(log.pairs(), make_spec())
    assert [item.trial for item in run.trials] == ["1"]
    assert [(refusal.trial, refusal.reason, refusal.refused_ns) for refusal in run.refusals] == [("2", "trials", ns(9.1))]
    assert flags(run) == {"over_budget": 1}


def test_an_attempt_run_again_under_its_number_is_kept_and_flagged() -> None:
    log, _ = one_trial()
    again = log.process("worker", 8)
    again.start("1", 9, slot=1)
    again.end("1", 10, "failed", 0, cause="x", charged="workload")
    run = derive(log.pairs(), make_spec())
    assert [(attempt.slot, attempt.state) for attempt in run.trials[0].attempts] == [(0, "superseded"), (1, "failed")]
    assert flags(run) == {"attempt_repeated": 1}


def test_a_process_of_another_boot_is_aligned_by_its_anchor() -> None:
    log = Log()
    log.step("deploy", 0, 1)
    log.submit("1", 2)
    pod = log.process("trial", 2.5, host="pod", boot="boot-2", clock_shift=-700)
    pod.start("1", 3, slot=0)
    pod.end("1", 4, "failed", 0, cause="x", charged="workload")
    run = derive(log.pairs(), make_spec())
    (attempt,) = run.trials[0].attempts
    assert (attempt.started_ns, attempt.uncertainty_ns, run.clock_uncertainty_ns) == (ns(3), 400, 400)


def test_a_trial_that_seems_to_start_before_its_submission_widens_the_uncertainty() -> None:
    log = Log()
    log.step("deploy", 0, 1)
    log.submit("1", 3)
    pod = log.process("trial", 2, host="pod", boot="boot-2")
    pod.start("1", 2.9, slot=0)
    run = derive(log.pairs(), make_spec())
    assert run.clock_uncertainty_ns == ns(0.1)
    assert flags(run) == {"started_before_submitted": 1}


@pytest.mark.parametrize(
    ("plant", "flag"),
    [
        (lambda log: log.coordinator.add(schema.BestKnown, 170, trial="3", value=0.1), "best_differs"),
        (lambda log: log.coordinator.add(schema.BestKnown, 170, trial="1", value=0.94), "best_value_differs"),
        (lambda log: log.coordinator.add(schema.BestKnown, 170, trial="99"), "unknown_best"),
        (lambda log: log.submit("3", 111.9, x=0.77), "configuration_changed"),
        (lambda log: log.writers[1].events.pop(1), "orphan_events"),
        (lambda log: log.coordinator.add(schema.Flag, 5, name="noted", text="something"), "noted"),
        (lambda log: Log.process(_of_execution(log, "other"), "worker", 1), "foreign_events"),
    ],
)
def test_every_planted_defect_is_flagged(plant: Any, flag: str) -> None:
    log, spec = example_a()
    plant(log)
    assert flag in flags(derive(log.pairs(), spec))


def test_the_status_follows_from_the_events() -> None:
    def status(change: Any) -> tuple[str, str | None, str | None]:
        log, spec = example_a()
        change(log.coordinator.events)
        run = derive(log.pairs(), spec)
        return run.status, run.reason, run.charged

    def without(*kinds: type[Any]) -> Any:
        def change(events: list[Any]) -> None:
            events[:] = [event for event in events if not isinstance(event, kinds)]

        return change

    def failing(error: str) -> Any:
        def change(events: list[Any]) -> None:
            events[1:3] = [
                schema.StepStarted(seq=1, t=events[1].t, step="deploy"),
                schema.StepEnded(seq=2, t=events[2].t, step="deploy", error=error, charged="framework"),
            ]

        return change

    assert status(lambda events: None) == ("done", None, None)
    assert status(without(schema.Tested)) == ("failed", "the best trial was not tested", "infrastructure")
    assert status(without(schema.BestKnown)) == ("failed", "the framework named no best trial", "framework")
    assert status(without(schema.StepEnded))[0] == "interrupted"
    assert status(failing("boom")) == ("failed", "step deploy failed: boom", "framework")
    assert status(failing("interrupted"))[0] == "interrupted"


def test_no_events_at_all_still_give_a_record() -> None:
    run = derive([], make_spec())
    assert (run.status, run.trials, run.steps) == ("interrupted", (), ())


@pytest.mark.parametrize("errors", [("the cluster is away", None), (None, "the cluster is away")])
def test_of_a_step_that_was_done_again_the_first_start_and_the_last_end_count(errors: tuple[str | None, ...]) -> None:
    log, _ = one_trial()
    for at, error in zip((8, 12), errors, strict=True):
        log.step("undeploy", at, at + 1, **({"error": error, "charged": "framework"} if error else {}))
    step = derive(log.pairs(), make_spec()).steps[-1]
    assert (step.step, step.started_ns, step.ended_ns, step.error) == ("undeploy", ns(8), ns(13), errors[1])
    assert step.charged == ("framework" if errors[1] else None)


@pytest.mark.parametrize(
    ("trained", "decided", "state", "counts"),
    [(3, (2, 1, 3), "pruned", 1), (3, (4,), "pruned", None), (3, (), "pruned", 3), (2, (3,), "completed", None)],
)
def test_the_earliest_decision_to_stop_a_trial_counts_where_it_fell_on_one_of_its_epochs(
    trained: int, decided: tuple[int, ...], state: schema.EndState, counts: int | None
) -> None:
    log, worker = one_trial(epochs=trained)
    for epoch in decided:
        log.coordinator.add(schema.StopDecided, 7, trial="1", epoch=epoch)
    worker.end("1", 8, state, trained, ended_early=state == "completed")
    assert trial(log).stop_epoch == counts
