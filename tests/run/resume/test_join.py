"""One run out of two executions."""

from __future__ import annotations

from typing import Any

from builders.resume_logs import SPEC, continuing_log, killed_log
from tuneoff.measure.derived import with_metrics
from tuneoff.measure.resumed import RESUMED
from tuneoff.measure.waste import LOWER_BOUND_FLAG
from tuneoff.record.derive import derive
from tuneoff.record.endings import KILLED
from tuneoff.record.join import CHANGED_FLAG, REPEATED_FLAG, RESUMED_FLAG, history_of
from tuneoff.record.run_record import RunRecord


def killed() -> RunRecord:
    return derive(killed_log().pairs(), SPEC, ruling=KILLED)


def continuing(**changes: Any) -> RunRecord:
    return derive(continuing_log(**changes).pairs(), SPEC, earlier=[killed()])


def test_what_ended_by_itself_is_finished_and_the_rest_is_begun_again() -> None:
    history = history_of([killed()])
    assert [(trial.trial_id, trial.state, trial.value) for trial in history.finished] == [
        ("t00000", "completed", 0.8),
        ("t00001", "failed", None),
    ]
    assert history.finished[0].values == ((1, 0.8), (2, 0.7))
    assert [(trial.trial_id, trial.attempt) for trial in history.unfinished] == [("t00002", 2), ("t00003", 2)]
    assert history.epochs == 3, "that of the lost attempt was trained too"
    assert history.seconds == 5.0, "from the first start to the last sign of life"
    assert [one.execution_id for one in history.executions] == ["run1-one"]


def test_the_joined_run_has_every_trial_with_all_its_attempts() -> None:
    record = continuing()
    assert [(trial.trial, trial.state) for trial in record.trials] == [
        ("t00000", "completed"),
        ("t00001", "failed"),
        ("t00002", "completed"),
        ("t00003", "completed"),
    ]
    lost = record.trials[2]
    assert [(one.attempt, one.state, len(one.epochs)) for one in lost.attempts] == [(1, "superseded", 1), (2, "completed", 2)]
    assert lost.value == 0.95, "the value of the attempt whose checkpoint there is"
    assert lost.attempts[0].started_ns == -94 * 10**9, "on the scale of the last execution"
    assert record.continues is not None
    assert record.continues.finished == ("t00000", "t00001")
    assert record.continues.begun_again == ("t00002", "t00003")
    assert record.continues.away_ns == 93 * 10**9
    assert [flag.name for flag in record.flags] == [RESUMED_FLAG]


def test_after_a_reboot_the_wall_clock_joins_them() -> None:
    record = continuing(boot="boot-2")
    assert record.trials[2].attempts[0].started_ns == -94 * 10**9


def test_a_finished_trial_that_is_trained_again_is_flagged() -> None:
    assert REPEATED_FLAG in [flag.name for flag in continuing(repeats="t00000").flags]


def test_another_configuration_under_the_same_name_is_flagged() -> None:
    assert CHANGED_FLAG in [flag.name for flag in continuing(x=0.9).flags]


def test_lost_work_is_waste_and_times_of_the_whole_have_no_value() -> None:
    run = with_metrics(continuing())
    metrics = run.metrics
    assert (metrics["waste.default.time"].kind, LOWER_BOUND_FLAG in [flag.name for flag in run.flags]) == ("estimated", True)
    assert metrics["waste.default.time"].value == 2000.0, "1 s of the lost attempt, and 1 s of the trial that failed"
    assert metrics["trials.used"].value == 4
    assert metrics["trials.of_budget"].value == 100
    assert metrics["epochs.trained"].value == 7
    for name in ("time.jct", "slots.idle", "energy.job", "trials.per_second"):
        assert metrics[name].value is None, name
    assert metrics["time.jct"].reason_if_null in (RESUMED, "un-deploy did not end")
