"""Who ends a trial, how, why, and who is charged for it, where several say so, nobody does, or the run is being stopped.

Who ended a trial decides whether it timed out, never how its cause begins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders.event_logs import Log, ns
from builders.specs import make_spec
from record.test_derive import one_trial, trial
from tuneoff.experiment.spec import Budget, Failures, Objective, Workers
from tuneoff.measure.derived import with_metrics
from tuneoff.record.derive import derive
from tuneoff.record.endings import AT_GOAL, KILLED
from tuneoff.record.events import schema
from tuneoff.trust.history_check.rules import check_history


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


@pytest.mark.parametrize("by", ["supervisor", "trial"])
def test_an_announced_kill_gives_cause_and_charge_of_the_end_whoever_wrote_that(by: str) -> None:
    log, worker = one_trial()
    supervisor = log.process("supervisor", 0)
    supervisor.add(schema.TrialKilled, 8, trial="1", cause="longer than 5 s", charged="workload", limit="time")
    (supervisor if by == "supervisor" else worker).end("1", 8.1, "failed", 2, by=by)
    assert end_of(log) == ("timed_out", "longer than 5 s", "workload")


def test_a_trial_whose_own_error_speaks_of_time_has_failed() -> None:
    log, worker = one_trial()
    worker.end("1", 6, "failed", 2, cause="timed out", charged="workload")
    assert (trial(log).state, trial(log).cause) == ("failed", "timed out")


def end_of(log: Log) -> tuple[str, str | None, str | None]:
    """Return state, cause and who is charged of the one trial of a log."""
    record = trial(log)
    return record.state, record.cause, record.charged


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
    assert end_of(log) == ("cancelled", "interrupted by the user", "user")


@pytest.mark.parametrize("by", ["trial", "supervisor"])
def test_a_trial_that_was_killed_before_the_run_was_stopped_keeps_its_cause(by: str) -> None:
    log, worker = one_trial()
    supervisor = log.process("supervisor", 0)
    supervisor.add(schema.TrialKilled, 6.5, trial="1", cause="more than 5 MB", charged="workload", limit="memory")
    supervisor.add(schema.RunStopped, 7, **INTERRUPTED)
    (supervisor if by == "supervisor" else worker).end("1", 8, "failed", 2, by=by)
    assert end_of(log) == ("failed", "more than 5 MB", "workload")


def test_the_supervisor_s_reason_is_the_cause_of_what_died_with_the_coordinator() -> None:
    log, _ = one_trial()
    supervisor = log.process("supervisor", 0)
    cause = "the coordinator ended with exit code -9 in step trial"
    supervisor.add(schema.RunStopped, 7, cause=cause, charged="infrastructure")
    supervisor.add(schema.TrialEnded, 8, trial="1", state="failed", epochs=2, by="supervisor")
    assert end_of(log) == ("failed", cause, "infrastructure")


@pytest.mark.parametrize(
    ("failed", "state", "cause", "charged"),
    [
        (None, "cancelled", KILLED.reason, "user"),
        ("undeploy", "cancelled", KILLED.reason, "user"),  # by whoever cleaned up
        ("trial", "failed", "step trial failed: the namespace is away", "framework"),  # before the kill
    ],
)
def test_a_killed_command_cancels_what_nobody_saw_end(failed: schema.Step | None, state: str, cause: str, charged: str) -> None:
    log, _ = one_trial()
    if failed is not None:
        cleaner = log.process("coordinator", 8)
        cleaner.add(schema.StepStarted, 8, step=failed)
        cleaner.add(schema.StepEnded, 9, step=failed, error="the namespace is away", charged="framework")
    run = derive(log.pairs(), make_spec(), ruling=KILLED)
    (record,) = run.trials
    assert (record.state, record.cause, record.charged) == (state, cause, charged)
    assert (run.status, run.charged) == ("interrupted", "user")


def test_an_observed_end_is_never_before_the_last_sign_of_life() -> None:
    log, _ = one_trial()
    log.coordinator.add(schema.TrialEnded, 4, trial="1", state="pruned", epochs=1, by="coordinator")
    assert trial(log).attempts[0].ended_ns == ns(5.5)


@pytest.mark.parametrize(
    ("epochs", "called", "state"),
    [
        (4, "pruned", "completed"),
        (4, "cancelled", "completed"),
        (4, "completed", "completed"),
        (3, "completed", "pruned"),
        (4, "failed", "failed"),
    ],
)
def test_a_trial_is_complete_with_all_planned_epochs_whatever_it_is_called_but_failed(
    epochs: int, called: Any, state: str
) -> None:
    log, worker = one_trial(epochs=epochs)
    worker.end("1", 9, called, epochs)
    assert trial(log).state == state


def test_a_trial_that_only_an_observer_saw_end_is_complete_with_all_planned_epochs() -> None:
    for epochs, state in ((4, "completed"), (3, "failed")):
        log, _ = one_trial(epochs=epochs)
        log.coordinator.add(
            schema.TrialEnded, 9, trial="1", state="failed", epochs=0, by="coordinator", cause="x", charged="workload"
        )
        assert trial(log).state == state


@pytest.mark.parametrize("is_dead", [True, False])
def test_a_framework_may_try_again_what_died_after_its_last_epoch(is_dead: bool) -> None:
    log, _ = one_trial(epochs=4)
    log.process("supervisor", 0).end("1", 8, "completed", 4, by="supervisor")
    if is_dead:
        log.coordinator.add(schema.WorkerDied, 8.1, trial="1", cause="gone", attempt=1)
    log.submit("1", 9, attempt=2)
    worker = log.process("worker", 9)
    worker.start("1", 10, slot=0, attempt=2)
    for epoch in range(1, 5):
        worker.epoch("1", epoch, 10 + epoch, reported=10.5 + epoch, attempt=2)
    worker.end("1", 15, "completed", 4, attempt=2)
    breaches = {breach.rule for breach in check_history(log.pairs(), make_spec(failures=Failures(retries=1)), is_done=True)}
    assert ("resurrected" in breaches) is not is_dead


@pytest.mark.parametrize("by", ["the framework", ""])
def test_a_run_that_ends_at_its_goal(by: str) -> None:
    """The trial that met it is complete, others that the framework ended then are cancelled, and nothing of it is a breach."""
    log = Log()
    log.step("deploy", 0, 1)
    trials = {"met": (0.9, "pruned"), "cut": (0.4, "pruned"), "cut too": (0.4, "pruned"), "through": (0.5, "completed")}
    for slot, (name, (value, stop)) in enumerate(trials.items()):
        worker = log.process("worker", 2)
        log.submit(name, 3)
        worker.start(name, 4, slot=slot)
        worker.epoch(name, 1, 5, value, reported=5.5, stop=stop == "pruned")
        if stop == "completed":
            worker.epoch(name, 2, 8, value, reported=8)
        worker.end(name, 8 if stop == "completed" else 7, stop, 2 if stop == "completed" else 1)  # type: ignore[arg-type]
    log.coordinator.add(schema.GoalMet, 6, trial="met", by=by)
    log.coordinator.add(schema.BestKnown, 9, trial="met", value=0.85)  # of the epoch that it knew
    objective = Objective(metric="validation_accuracy", mode="max", goal=0.8, goals={"light": 0.45, "full": 0.8}, stop=True)
    spec = make_spec(objective=objective, budget=Budget(trials=10, epochs_per_trial=2), workers=Workers(count=4))
    run = with_metrics(derive(log.pairs(), spec))
    states = {trial.trial: (trial.state, trial.cause, trial.stop_epoch) for trial in run.trials}
    assert states["through"] == ("completed", None, None)
    if by:
        assert states["met"] == ("completed", None, None)
        assert states["cut"] == ("cancelled", AT_GOAL, None)
        assert run.metrics["goal.seconds"].value == run.metrics["goal.full.seconds"].value == 2
        assert run.metrics["waste.post_goal.trials"].value == 3
        assert run.metrics["goal.light.seconds"].value == 2
    names = {flag.name for flag in run.flags}
    assert names >= {"stopped_at_goal" if by else "stopped_by_core"}
    assert ("best_value_differs" in names) is not bool(by)
    assert check_history(log.pairs(), spec, is_done=True) == []
    spec = replace(spec, experiment=replace(spec.experiment, objective=replace(objective, goal=0.95)))
    assert [breach.rule for breach in check_history(log.pairs(), spec, is_done=True)] == ["goal-not-met"]


def test_a_replaced_attempt_that_outlives_the_goal_without_an_epoch_is_not_after_it() -> None:
    log = Log()
    log.step("deploy", 0, 1)
    log.submit("met", 3)
    late, later = log.process("worker", 2), log.process("worker", 2)
    late.start("met", 4, slot=0)
    later.start("met", 4.5, slot=1, attempt=2)
    later.epoch("met", 1, 5, 0.9, reported=5.1, attempt=2)
    later.end("met", 6, "completed", 1, attempt=2)
    late.end("met", 7, "failed", 0)
    log.coordinator.add(schema.GoalMet, 6, trial="met", by="the framework")
    objective = Objective(metric="validation_accuracy", mode="max", goal=0.8, stop=True)
    spec = make_spec(objective=objective, budget=Budget(trials=10, epochs_per_trial=1), failures=Failures(retries=1))
    assert with_metrics(derive(log.pairs(), spec)).metrics["waste.post_goal.trials"].value == 0
