"""Following an experiment: every trial's events arrive once, every end is written, and the end of the run is known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adapters.katib.followed_run import DONE, FAILED, FIRST, SECOND, THIRD, Run
from adapters.katib.katib_objects import RUNNING, condition, container, ended
from adapters.katib.pod_lines import own_end, whole_log
from tuneoff.errors import StepError
from tuneoff.experiment.spec import Budget, Timeouts
from tuneoff.record.events import schema
from tuneoff_adapters.katib import follow
from tuneoff_adapters.kubernetes.api_errors import Unreachable
from tuneoff_adapters.kubernetes.resources import COLLECTOR, Object
from waiting import until

pytestmark = pytest.mark.slow


def failure_of(run: Run) -> str:
    with pytest.raises(StepError) as caught:
        run.follower.wait_end()
    return str(caught.value)


def test_an_ordinary_run_is_followed_to_its_end(run: Run) -> None:
    run.completes(FIRST, [0.5, 0.25])
    run.follower.wait_first_trial()
    run.completes(SECOND, [0.75, 0.5])
    run.succeeds()
    trials = {record.trial: record for record in run.record().trials}
    assert {name: (record.state, record.value) for name, record in trials.items()} == {
        FIRST: ("completed", 0.25),
        SECOND: ("completed", 0.5),
    }
    assert trials[FIRST].framework_id == f"{run.plan.experiment}-{FIRST}"
    for attempt in (attempt for record in trials.values() for attempt in record.attempts):
        assert attempt.submitted_ns <= attempt.started_ns <= attempt.ended_ns <= attempt.exited_ns
    assert run.cluster.watched == dict.fromkeys(("experiments", "trials", "pods"), run.plan.labels)
    assert run.record().flags == ()
    reports = run.follower.ledger.reports().values()
    assert [(one.trial_id, one.is_complete, one.value) for one in reports] == [(FIRST, True, 0.25), (SECOND, True, 0.5)]


@pytest.mark.parametrize(
    ("containers", "conditions", "state", "cause", "charged"),
    [
        ([ended(137, "OOMKilled")], FAILED, "failed", "out of memory: more than 500 MB (container)", "workload"),
        ([ended(143)], (condition("Running"), condition("EarlyStopped", "TrialEarlyStopped")), "pruned", None, None),
    ],
)
def test_a_trial_that_does_not_say_its_end_gets_one(
    run: Run,
    containers: list[Object],
    conditions: tuple[Object, ...],
    state: str,
    cause: str | None,
    charged: str | None,
) -> None:
    run.begins(FIRST, 0.5)
    run.dies(FIRST, *containers, conditions=conditions)
    run.completes(SECOND, [0.5, 0.5])
    run.succeeds()
    records = {record.trial: record for record in run.record().trials}
    found = records[FIRST]
    assert (found.state, found.charged, records[SECOND].state) == (state, charged, "completed")
    assert (cause or "") in (found.cause or "")
    assert found.attempts[0].ended_by == "coordinator"


@pytest.mark.parametrize(
    ("conditions", "state"),
    [
        (DONE, "completed"),
        ((condition("Running"), condition("EarlyStopped", "TrialEarlyStopped")), "pruned"),
    ],
)
def test_a_training_that_ended_by_itself_is_completed_unless_katib_stopped_it_just_then(
    run: Run, conditions: tuple[Object, ...], state: str
) -> None:
    run.begins(FIRST, 0.1)
    run.cluster.log(f"p-{FIRST}", *run.logged(own_end(FIRST, 3, epochs=1, ended_early=True)))
    run.pod(FIRST, "Succeeded", ended(0))
    run.trial(FIRST, *conditions)
    run.completes(SECOND, [0.5, 0.5])
    run.succeeds()
    records = {record.trial: record for record in run.record().trials}
    assert (records[FIRST].state, records[SECOND].state) == (state, "completed")
    complete = {one.trial_id for one in run.follower.ledger.reports().values() if one.is_complete}
    assert complete == ({FIRST, SECOND} if state == "completed" else {SECOND})


@pytest.mark.parametrize(
    ("timeouts", "cause"),
    [
        (Timeouts(trial_seconds=0.3, silence_seconds=100), "timed out: longer than 0.3 s"),
        (Timeouts(trial_seconds=100, silence_seconds=0.3), "timed out: silent for 0.3 s"),
    ],
)
def test_a_trial_over_a_limit_is_killed_by_its_pod(make: Callable[..., Run], timeouts: Timeouts, cause: str) -> None:
    run = make(timeouts=timeouts)
    run.begins(FIRST, 0.5)
    assert until(lambda: FIRST in run.ends())
    assert run.cluster.deleted == [("pods", f"p-{FIRST}")]
    (record,) = run.record().trials
    assert (record.state, record.cause, record.charged) == ("timed_out", cause, "workload")


def test_a_log_that_does_not_come_through_is_not_taken_for_silence(make: Callable[..., Run]) -> None:
    run = make(timeouts=Timeouts(trial_seconds=100, silence_seconds=0.3))
    run.begins(FIRST)
    run.cluster.log_text[f"p-{FIRST}"] = b"1\n2\n3\n"
    assert until(lambda: any(trial.is_recounting for trial in run.follower.ledger))
    assert until(lambda: not any(trial.is_recounting for trial in run.follower.ledger))
    assert run.cluster.deleted == []


def test_a_pod_that_prints_nothing_at_all_is_silent_too(make: Callable[..., Run]) -> None:
    run = make(timeouts=Timeouts(trial_seconds=100, silence_seconds=0.3))
    run.runs(FIRST)
    assert until(lambda: run.cluster.deleted == [("pods", f"p-{FIRST}")])


def test_the_time_of_the_run_ends_what_still_runs_as_cancelled(make: Callable[..., Run]) -> None:
    run = make(budget=Budget(trials=3, epochs_per_trial=2, wall_clock_seconds=0.5))
    run.completes(FIRST, [0.5, 0.25])
    run.begins(SECOND, 0.5)
    run.trial(THIRD, condition("Created"))
    run.follower.wait_end()
    assert run.cluster.deleted == [("experiments", run.plan.experiment)]
    records = {record.trial: record for record in run.record().trials}
    assert {name: record.state for name, record in records.items()} == {
        FIRST: "completed",
        SECOND: "cancelled",
        THIRD: "cancelled",
    }
    assert records[SECOND].cause == "wall-clock budget used up"


def test_trials_beyond_the_budget_are_refused_and_their_pods_deleted(run: Run) -> None:
    run.completes(FIRST, [0.5, 0.25])
    run.completes(SECOND, [0.5, 0.25])
    assert until(lambda: len(run.ends()) == 2)
    run.trial(THIRD, condition("Running"))
    assert until(lambda: bool(run.events(schema.TrialRefused)))
    run.pod(THIRD, "Running", container(running={}), change="ADDED")
    assert until(lambda: run.cluster.deleted == [("pods", f"p-{THIRD}")])
    run.trial(THIRD, *FAILED)
    run.succeeds(trials=3)
    assert [record.trial for record in run.record().trials] == [FIRST, SECOND]
    assert [refusal.trial for refusal in run.record().refusals] == [THIRD]


def test_pods_that_had_to_wait_for_room_are_flagged(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "_NOTICEABLE_NS", 0)
    run.trial(FIRST, condition("Running"))
    run.pod(FIRST, "Pending", conditions=[condition("PodScheduled", "Unschedulable", "no room", status="False")])
    assert until(lambda: any(trial.unscheduled_ns is not None for trial in run.follower.ledger))
    run.completes(FIRST, [0.5, 0.25])
    run.completes(SECOND, [0.5, 0.25])
    run.succeeds()
    (flag,) = run.events(schema.Flag)
    assert (flag.name, flag.text.split(":")[0]) == ("pods_waited", "1 pods had to wait for room in the cluster")


def test_a_suggestion_that_never_gets_ready_ends_setup_before_the_step_s_limit(make: Callable[..., Run]) -> None:
    quota = ("ReplicaSet", "-random-5d", "FailedCreate", "exceeded quota: q")
    run = make(quota, timeouts=Timeouts(setup_seconds=0.8))
    with pytest.raises(StepError, match="FailedCreate: exceeded quota: q"):
        run.follower.wait_first_trial()


def test_an_api_server_that_is_away_ends_the_run_and_keeps_what_came(run: Run) -> None:
    run.completes(FIRST, [0.5, 0.25])
    run.cluster.feeds["trials"].put(Unreachable("GET /trials: the API server cannot be reached"))
    assert "cannot be reached" in failure_of(run)
    assert run.ends()[FIRST].state == "completed"


def test_an_experiment_that_somebody_deletes_ends_the_run(run: Run) -> None:
    run.completes(FIRST, [0.5, 0.25])
    run.experiment(RUNNING, change="DELETED")
    assert "was deleted by someone else" in failure_of(run)


def test_a_fault_of_the_thread_is_raised_and_not_waited_for(run: Run) -> None:
    name = f"{run.plan.experiment}-{FIRST}"
    run.cluster.feeds["trials"].put(("ADDED", {"metadata": {"name": name}, "spec": {"parameterAssignments": []}}))
    with pytest.raises(Exception, match="x is missing"):
        run.follower.wait_end()


@pytest.mark.parametrize(
    ("containers", "conditions", "flag"),
    [
        ([ended(0), ended(1, name=COLLECTOR, message="DB manager is gone")], FAILED, "collector_died"),
        ([ended(0)], (condition("MetricsUnavailable", "MetricsUnavailable"),), "metrics_unavailable"),
    ],
)
def test_a_completed_trial_that_katib_takes_for_something_else_is_flagged(
    make: Callable[..., Run], containers: list[Object], conditions: tuple[Object, ...], flag: str
) -> None:
    run = make(budget=Budget(trials=1, epochs_per_trial=2))
    run.runs(FIRST, *whole_log(FIRST, [0.5, 0.25], {"x": 0.5}, run.context.execution_id))
    run.dies(FIRST, *containers, conditions=conditions)
    run.succeeds(trials=1)
    assert [item.name for item in run.events(schema.Flag)] == [flag]


def test_a_rotated_log_is_flagged(run: Run) -> None:
    run.cluster.logs[f"p-{FIRST}"] = feed = run.cluster.follow_log("", f"p-{FIRST}", "", lambda: True)
    feed.was_rotated = True
    run.completes(FIRST, [0.5, 0.25])
    assert until(lambda: any(item.name == "pod_log_rotated" for item in run.events(schema.Flag)))


def test_an_interrupted_run_keeps_the_logs_of_trials_that_have_ended(run: Run) -> None:
    run.begins(SECOND, 0.5)
    run.completes(FIRST, [0.5, 0.25])
    assert until(lambda: bool(run.events(schema.TrialStarted)))
    run.follower.stop(5.0)
    assert run.ends()[FIRST].state == "completed"
    assert SECOND not in run.ends()
    assert {item.trial for item in run.events(schema.TrialSubmitted)} == {FIRST, SECOND}
    run.follower.stop(5.0)  # a second time changes nothing
