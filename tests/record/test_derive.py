from __future__ import annotations

from typing import Any

import pytest

from builders.event_logs import Log, example_a, example_b, ns
from builders.specs import make_spec
from tuneoff.base.identity import configuration_digest
from tuneoff.experiment.spec import Objective, RunSpec
from tuneoff.record.derive import best_trial, derive
from tuneoff.record.events import schema
from tuneoff.record.run_record import RunRecord, TrialRecord
from tuneoff.record.verdict import Verdict


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


def test_the_order_of_files_changes_nothing() -> None:
    log, spec = example_b()
    orders = ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3])
    records = [derive(log.pairs(order), spec) for order in orders]
    assert records[0] == records[1] == records[2]


def test_the_own_end_of_a_trial_wins_over_an_observer_that_was_first() -> None:
    log, worker = one_trial()
    log.coordinator.add(schema.TrialEnded, 6, trial="1", state="failed", epochs=0, by="coordinator", cause="gone")
    worker.end("1", 7, "pruned", 2)
    record = trial(log)
    assert (record.state, record.attempts[0].ended_by, record.attempts[0].ended_ns) == ("pruned", "trial", ns(7))


def test_the_first_observer_ends_a_trial_that_could_not() -> None:
    log, _ = one_trial()
    supervisor = log.process("supervisor", 0)
    supervisor.add(schema.TrialEnded, 9, trial="1", state="failed", epochs=2, by="supervisor", cause="second", uncertainty_ns=5)
    log.coordinator.add(schema.TrialEnded, 8, trial="1", state="failed", epochs=2, by="coordinator", cause="first")
    record = trial(log)
    assert (record.cause, record.attempts[0].ended_by, record.attempts[0].ended_ns) == ("first", "coordinator", ns(8))


def test_an_announced_kill_gives_cause_and_charge_of_the_end() -> None:
    log, _ = one_trial()
    supervisor = log.process("supervisor", 0)
    supervisor.add(schema.TrialKilled, 8, trial="1", cause="longer than 5 s", charged="workload", limit="time")
    supervisor.add(schema.TrialEnded, 8.1, trial="1", state="failed", epochs=2, by="supervisor")
    record = trial(log)
    assert (record.state, record.cause, record.charged) == ("timed_out", "longer than 5 s", "workload")


@pytest.mark.parametrize(("exit_code", "charged"), [(3, "workload"), (-9, "infrastructure"), (None, "infrastructure")])
def test_a_death_that_only_the_adapter_saw_ends_the_trial(exit_code: int | None, charged: str) -> None:
    log, _ = one_trial()
    log.coordinator.add(schema.WorkerDied, 8, trial="1", cause="it died", exit_code=exit_code)
    record = trial(log)
    assert (record.state, record.cause, record.charged) == ("failed", "it died", charged)
    assert record.attempts[0].ended_ns == ns(8)


def test_a_trial_without_any_end_is_lost_and_charged_to_the_infrastructure() -> None:
    log, _ = one_trial()
    record = trial(log)
    assert record.state == "failed"
    assert record.cause is not None
    assert record.cause.startswith("lost")
    assert record.charged == "infrastructure"
    assert record.attempts[0].ended_ns == ns(5.5)  # the last sign of life


INTERRUPTED = {"cause": "interrupted by the user", "charged": "user", "cancels": True}


def end_in_any_way(log: Log, worker: Any, way: str) -> None:
    """End trial "1" at 8 s as a run that is being stopped does it."""
    supervisor = log.process("supervisor", 0)
    supervisor.add(schema.RunStopped, 7, **INTERRUPTED)
    if way == "own":
        worker.end("1", 8, "failed", 2, cause="BrokenPipeError: gone", charged="framework")
    elif way == "died":
        log.coordinator.add(schema.WorkerDied, 8, trial="1", cause="worker killed by SIGKILL", exit_code=-9)
    elif way == "buried":
        supervisor.add(schema.TrialEnded, 8, trial="1", state="failed", epochs=2, by="supervisor")


@pytest.mark.parametrize("way", ["own", "died", "buried", "lost"])
def test_what_an_interruption_ends_is_cancelled_by_the_user(way: str) -> None:
    log, worker = one_trial()
    end_in_any_way(log, worker, way)
    record = trial(log)
    assert (record.state, record.cause, record.charged) == ("cancelled", "interrupted by the user", "user")


def test_what_failed_before_an_interruption_stays_as_it_was() -> None:
    log, worker = one_trial()
    worker.end("1", 6, "failed", 2, cause="ValueError: x", charged="workload")
    log.process("supervisor", 0).add(schema.RunStopped, 7, **INTERRUPTED)
    assert (trial(log).state, trial(log).charged) == ("failed", "workload")
    log, _ = one_trial()
    supervisor = log.process("supervisor", 0)
    supervisor.add(schema.TrialKilled, 6, trial="1", cause="timed out: silent for 1 s", charged="workload", limit="time")
    supervisor.add(schema.RunStopped, 7, **INTERRUPTED)
    supervisor.add(schema.TrialEnded, 8, trial="1", state="failed", epochs=2, by="supervisor")
    assert (trial(log).state, trial(log).charged) == ("timed_out", "workload")


def test_what_completed_or_was_pruned_after_an_interruption_stays_so() -> None:
    log, worker = one_trial(epochs=4)
    log.process("supervisor", 0).add(schema.RunStopped, 5, **INTERRUPTED)
    worker.end("1", 9, "completed", 4)
    assert (trial(log).state, trial(log).charged) == ("completed", None)


def test_the_supervisor_s_reason_is_the_cause_of_what_died_with_the_coordinator() -> None:
    log, _ = one_trial()
    supervisor = log.process("supervisor", 0)
    cause = "the coordinator ended with exit code -9 in step trial"
    supervisor.add(schema.RunStopped, 7, cause=cause, charged="infrastructure")
    supervisor.add(schema.TrialEnded, 8, trial="1", state="failed", epochs=2, by="supervisor")
    assert (trial(log).state, trial(log).cause, trial(log).charged) == ("failed", cause, "infrastructure")


@pytest.mark.parametrize(("at", "cause"), [(8, "step trial failed: the server is gone"), (6, "failed without a cause")])
def test_a_step_that_failed_is_the_cause_of_what_ended_without_one_after_it(at: float, cause: str) -> None:
    log, _ = one_trial()
    log.coordinator.add(schema.StepEnded, 7, step="trial", error="the server is gone", charged="infrastructure")
    log.process("supervisor", 0).add(schema.TrialEnded, at, trial="1", state="failed", epochs=2, by="supervisor")
    record = trial(log)
    assert (record.state, record.cause, record.charged) == ("failed", cause, "infrastructure")


def test_a_killed_command_cancels_what_nobody_saw_end() -> None:
    log, _ = one_trial()
    verdict = Verdict(status="interrupted", reason="its tuneoff command was killed", charged="user")
    (record,) = derive(log.pairs(), make_spec(), verdict=verdict).trials
    assert (record.state, record.cause, record.charged) == ("cancelled", "its tuneoff command was killed", "user")


def test_a_platform_that_was_found_to_be_an_emulation_is_in_the_record() -> None:
    log, _ = one_trial()
    assert not derive(log.pairs(), make_spec()).emulated
    log.coordinator.add(schema.Flag, 1, name=schema.EMULATED_FLAG, text="it says so")
    assert derive(log.pairs(), make_spec()).emulated


def test_an_observed_end_is_never_before_the_last_sign_of_life() -> None:
    log, _ = one_trial()
    log.coordinator.add(schema.TrialEnded, 4, trial="1", state="pruned", epochs=1, by="coordinator")
    assert trial(log).attempts[0].ended_ns == ns(5.5)


@pytest.mark.parametrize("state", ["pruned", "cancelled", "completed"])
def test_a_trial_that_ran_all_planned_epochs_is_complete_whatever_it_is_called(state: Any) -> None:
    log, worker = one_trial(epochs=4)
    worker.end("1", 9, state, 4)
    assert trial(log).state == "completed"


def test_a_trial_that_stopped_before_its_planned_epochs_is_not_complete_whatever_it_is_called() -> None:
    log, worker = one_trial(epochs=3)
    worker.end("1", 9, "completed", 3)
    assert trial(log).state == "pruned"


def test_a_trial_that_failed_in_its_last_epoch_stays_failed() -> None:
    log, worker = one_trial(epochs=4)
    worker.end("1", 9, "failed", 4, cause="not finite", charged="workload")
    assert trial(log).state == "failed"


def test_the_value_is_the_best_finite_one_with_its_first_epoch() -> None:
    log, worker = one_trial(epochs=0)
    for epoch, value in enumerate([0.3, None, 0.7, 0.7], 1):
        worker.epoch("1", epoch, 3 + epoch, reported=3 + epoch, metrics={"validation_accuracy": value, "validation_loss": 0.4})
    worker.end("1", 9, "completed", 4)
    record = trial(log)
    assert (record.value, record.value_epoch, record.tie_loss) == (0.7, 3, 0.4)
    spec = make_spec(objective=Objective(metric="validation_loss", mode="min"))
    assert trial(log, spec).value_epoch == 1


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


def test_a_retry_supersedes_the_attempt_before_it() -> None:
    log, spec = example_b()
    record = next(item for item in derive(log.pairs(), spec).trials if item.trial == "2")
    assert [(attempt.attempt, attempt.state) for attempt in record.attempts] == [(1, "superseded"), (2, "completed")]
    assert (record.attempts[0].cause, record.attempts[0].charged) == ("OSError: load", "infrastructure")
    assert (record.state, record.cause) == ("completed", None)


def test_a_refused_trial_is_no_trial() -> None:
    log, worker = one_trial()
    worker.end("1", 9, "completed", 4)
    log.submit("2", 9)
    worker.add(schema.Refused, 9.1, trial="2", reason="trials")
    run = derive(log.pairs(), make_spec())
    assert [item.trial for item in run.trials] == ["1"]
    assert [(refusal.trial, refusal.reason, refusal.refused_ns) for refusal in run.refusals] == [("2", "trials", ns(9.1))]
    assert flags(run) == {"over_budget": 1}


def test_a_trial_that_no_process_took_up_is_cancelled_and_used_no_ticket() -> None:
    log = Log()
    log.submit("1", 2)
    record = trial(log)
    assert (record.state, record.used_ticket, record.configuration) == ("cancelled", False, {"x": 0.5})
    assert record.digest == configuration_digest({"x": 0.5})


def test_an_attempt_run_again_under_its_number_is_kept_and_flagged() -> None:
    log, _ = one_trial()
    again = log.process("worker", 8)
    again.start("1", 9, slot=1)
    again.end("1", 10, "failed", 0, cause="x", charged="workload")
    run = derive(log.pairs(), make_spec())
    assert [(attempt.slot, attempt.state) for attempt in run.trials[0].attempts] == [(0, "superseded"), (1, "failed")]
    assert flags(run) == {"attempt_repeated": 1}


def test_the_losing_epoch_is_the_scripted_one_even_if_no_stop_came() -> None:
    log, worker = one_trial(epochs=4)
    worker.end("1", 9, "completed", 4)
    spec = make_spec(pruner="scripted", stops={configuration_digest({"x": 0.5}): 2})
    assert trial(log, spec).stop_epoch == 2
    assert trial(log).stop_epoch is None


def test_a_process_of_another_boot_is_aligned_by_its_anchor() -> None:
    log = Log()
    log.step("deploy", 0, 1)
    log.submit("1", 2)
    pod = log.process("trial", 2.5, host="pod", boot="boot-2", clock_shift=-700)
    pod.start("1", 3, slot=0)
    pod.end("1", 4, "failed", 0, cause="x", charged="workload")
    run = derive(log.pairs(), make_spec())
    assert (run.trials[0].attempts[0].started_ns, run.clock_uncertainty_ns) == (ns(3), 400)


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


def test_a_run_without_a_completed_trial_failed_and_charges_who_the_trials_charge() -> None:
    log, worker = one_trial()
    worker.end("1", 9, "failed", 2, cause="ValueError: x", charged="workload")
    log.step("undeploy", 10, 11)
    run = derive(log.pairs(), make_spec())
    assert (run.status, run.reason, run.charged) == ("failed", "no trial completed: 1 of 1 failed: ValueError: x", "workload")


def test_a_verdict_of_the_supervisor_stands() -> None:
    log, spec = example_a()
    verdict = Verdict(status="timeout", reason="longer than 10 s", charged="framework")
    run = derive(log.pairs(), spec, verdict=verdict, versions={"tuneoff": "1"}, environment={"cpu": "x"})
    assert (run.status, run.reason, run.charged) == ("timeout", "longer than 10 s", "framework")
    assert (run.versions, run.environment) == ({"tuneoff": "1"}, {"cpu": "x"})


def test_no_events_at_all_still_give_a_record() -> None:
    run = derive([], make_spec())
    assert (run.status, run.trials, run.steps) == ("interrupted", (), ())
