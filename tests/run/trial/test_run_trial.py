"""run_trial: budget, events, decisions, faults."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import trial_runs
from trial_runs import events_of, go_on, run, trial_context
from tuneoff.base import clock
from tuneoff.base.process_limits import SlotLimits
from tuneoff.record.events import schema
from tuneoff.run.trial.checkpoint import checkpoint_path, read_checkpoint
from tuneoff.run.trial.run_trial import Decision, TrialOutcome, run_trial
from tuneoff.run.trial.trial_process import CpuClock, Slots, trial_process


def line_of(text: str) -> int:
    """Return the number of the line of trial_runs.py that holds a text."""
    lines = inspect.getsource(trial_runs).splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_a_trial_logs_every_stage_once_and_in_order(tmp_path: Path) -> None:
    outcome = run(trial_context(tmp_path))
    assert outcome == TrialOutcome(state="completed", epochs=3, value=0.6 / 3, best_epoch=3)
    kinds = [type(event).__name__ for event in events_of(tmp_path)]
    assert kinds == ["Process", "TrialStarted", "TrialLoaded", *["Epoch", "Reported"] * 3, "TrialEnded"]
    assert [event.seq for event in events_of(tmp_path)] == list(range(len(kinds)))


def test_the_value_is_the_best_epoch_and_its_checkpoint_is_kept(tmp_path: Path) -> None:
    outcome = run(trial_context(tmp_path, workload_options={"rises": True}))
    assert (outcome.value, outcome.best_epoch) == (0.6, 1)
    checkpoint = read_checkpoint(checkpoint_path(tmp_path, "t0"))
    assert checkpoint.epoch == 1
    assert checkpoint.texts == {"note": "curve"}
    assert [epoch.saved for epoch in events_of(tmp_path, schema.Epoch)] == [True, False, False]


def test_no_more_trials_than_tickets_run_whatever_the_framework_asks_for_and_a_retry_uses_that_of_its_trial(
    tmp_path: Path,
) -> None:
    context = trial_context(tmp_path, trials=2)
    states = [run(context, trial, attempt=attempt).state for trial, attempt in (("t0", 1), ("t0", 2), ("t1", 1), ("t2", 1))]
    assert states == ["completed", "completed", "completed", "refused"]
    assert [(event.trial, event.reason) for event in events_of(tmp_path, schema.TrialRefused)] == [("t2", "trials")]
    assert [event.attempt for event in events_of(tmp_path, schema.TrialStarted)] == [1, 2, 1]


@pytest.mark.parametrize(("megabytes", "epochs", "end"), [(2, 0, "failed"), (100_000, 3, "completed")])
def test_a_trial_too_short_for_the_watchdog_has_no_more_memory_than_its_limit(
    tmp_path: Path, megabytes: int, epochs: int, end: str
) -> None:
    outcome = run(trial_context(tmp_path, memory_bytes=megabytes * 1_000_000))
    assert (outcome.state, outcome.epochs) == (end, epochs)
    assert outcome.cause == (None if epochs else "out of memory: more than 2 MB (after load)")
    (ended,) = events_of(tmp_path, schema.TrialEnded)
    assert ended.charged == (None if epochs else "workload")


def test_the_wall_clock_budget_refuses_trials_and_cancels_running_ones(tmp_path: Path) -> None:
    context = trial_context(tmp_path, wall_clock_seconds=0.0)
    assert run(context, "t0").state in ("refused", "cancelled")
    assert run(context, "t1").state == "refused"


@pytest.mark.parametrize("is_raised", [False, True])
@pytest.mark.parametrize(("epoch", "state"), [(2, "pruned"), (3, "completed")])
def test_a_stop_prunes_a_trial_unless_it_comes_at_the_last_epoch_and_what_is_raised_is_raised_again(
    tmp_path: Path, epoch: int, state: str, is_raised: bool
) -> None:
    def report(now: int, metrics: Mapping[str, float]) -> Decision:
        if now == epoch and is_raised:
            raise SystemExit(0)
        return Decision.STOP if now == epoch else Decision.CONTINUE

    with pytest.raises(SystemExit) if is_raised else contextlib.nullcontext():
        run(trial_context(tmp_path), report=report)
    (end,) = events_of(tmp_path, schema.TrialEnded)
    assert (end.state, end.epochs) == (state, epoch)


def test_a_fault_of_report_is_charged_to_the_framework_and_raised_again(tmp_path: Path) -> None:
    def report(now: int, metrics: Mapping[str, float]) -> Decision:
        raise ConnectionError("storage is gone")

    with pytest.raises(ConnectionError):
        run(trial_context(tmp_path), report=report)
    (end,) = events_of(tmp_path, schema.TrialEnded)
    assert (end.state, end.charged) == ("failed", "framework")
    assert re.fullmatch(r"report failed: ConnectionError: storage is gone \(test_run_trial\.py:\d+\)", end.cause)


@pytest.mark.parametrize(
    ("options", "configuration", "cause"),
    [
        ({}, {"x": 0.5, "fail": "load"}, f"ValueError: no data (trial_runs.py:{line_of('no data')})"),
        ({"nan_at": 2}, {"x": 0.5}, "loss must be a finite number, but epoch 2 gave nan"),
        ({"memory_error_at": 2}, {"x": 0.5}, "out of memory"),
    ],
)
def test_a_fault_of_the_workload_is_a_failed_trial_with_its_cause(
    tmp_path: Path, options: dict[str, int], configuration: dict[str, object], cause: str
) -> None:
    context = trial_context(tmp_path, workload_options=options)
    outcome = run_trial(context, "t0", configuration, go_on)
    assert (outcome.state, outcome.cause) == ("failed", cause)
    (end,) = events_of(tmp_path, schema.TrialEnded)
    assert (end.charged, end.cause) == ("workload", cause)
    assert run(context, "t1", 0.4).state == ("failed" if options else "completed")


def test_the_traceback_of_a_failed_trial_is_in_the_log_of_its_execution_and_of_a_pod_on_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pod").mkdir()
    pod = trial_context(tmp_path / "pod", events_to_stdout=True)
    assert run_trial(pod, "t0", {"x": 0.5, "fail": "load"}, go_on).state == "failed"
    assert "ValueError: no data" in capsys.readouterr().err
    assert not (tmp_path / "pod" / "log.txt").exists()
    assert run_trial(trial_context(tmp_path), "t0", {"x": 0.5, "fail": "load"}, go_on).state == "failed"
    assert run(trial_context(tmp_path, workload_options={"memory_error_at": 1}), "t1").state == "failed"
    log = (tmp_path / "log.txt").read_text()
    assert log.index("trial t0 failed\nTraceback") < log.index("second line") < log.index("trial t1 failed\nTraceback")
    assert f'{trial_runs.__file__}", line {line_of("no data")}, in load' in log


@pytest.mark.parametrize("state", trial_runs.STATES)
def test_a_workload_that_promises_state_and_returns_none_is_a_failed_trial_that_says_so(tmp_path: Path, state: str) -> None:
    outcome = run(trial_context(tmp_path, workload="trial_runs:Forgetful", workload_options={"state": state}))
    assert outcome.state == "failed"
    problem = {"a dict": "is of the type dict", "one": "is of the type tuple"}.get(state, "is empty")
    assert all(word in (outcome.cause or "") for word in ("has_state", "`state_dict`", f"Forgetful {problem}"))


def test_a_metric_that_is_not_finite_is_stored_as_null_with_its_text(tmp_path: Path) -> None:
    run(trial_context(tmp_path, workload_options={"nan_at": 1}))
    (epoch,) = events_of(tmp_path, schema.Epoch)
    assert epoch.metrics == {"train_loss": 1.2, "loss": None}
    assert epoch.non_finite == {"loss": "nan"}


def test_a_slot_is_reserved_before_the_imports_and_kept_for_the_first_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else two processes that import at the same time and train briefly land on one slot."""
    left: list[int] = []
    monkeypatch.setattr("tuneoff.run.trial.trial_process._preload", lambda context: left.append(Slots(tmp_path, 2).take()[0]))
    assert run(trial_context(tmp_path, slots=2)).state == "completed"
    assert left == [1]
    assert [event.slot for event in events_of(tmp_path, schema.TrialStarted)] == [0]


def test_seeds_depend_on_the_configuration_and_not_on_the_order(tmp_path: Path) -> None:
    context = trial_context(tmp_path)
    for trial, x in (("t0", 0.1), ("t1", 0.2), ("t2", 0.1)):
        run(context, trial, x)
    first, second, third = (event.seed for event in events_of(tmp_path, schema.TrialStarted))
    assert first == third != second


def test_imports_come_before_the_start_of_a_process_s_first_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    imported: list[int] = []
    monkeypatch.setattr("tuneoff.run.trial.trial_process._preload", lambda context: imported.append(clock.monotonic_ns()))
    assert run(trial_context(tmp_path)).state == "completed"
    process, started = next(events_of(tmp_path, schema.Process)), next(events_of(tmp_path, schema.TrialStarted))
    assert process.t <= imported[0] <= started.imported_ns <= started.t


def test_the_clock_of_the_next_trial_goes_on_where_that_of_the_last_one_ended(tmp_path: Path) -> None:
    context = trial_context(tmp_path)
    for trial in ("t0", "t1"):
        run(context, trial)
    first, second = events_of(tmp_path, schema.TrialStarted)
    end = next(events_of(tmp_path, schema.TrialEnded))
    assert 0 <= second.process_cpu_ns - (first.process_cpu_ns + end.cpu_ns) < 20_000_000


def test_a_process_that_finds_no_free_slot_imports_without_one_and_takes_one_before_its_trial(tmp_path: Path) -> None:
    context, other = trial_context(tmp_path, slots=1), Slots(tmp_path, 1)
    other.take()
    trial_process(context)
    other.free(0)
    assert run(context).state == "completed"
    (started,) = events_of(tmp_path, schema.TrialStarted)
    assert (started.slot, started.waited_ns) == (0, 0)


def test_a_process_of_another_role_in_the_same_process_keeps_no_slot_reserved(tmp_path: Path) -> None:
    context = trial_context(tmp_path, slots=1)
    trial_process(context, "trial")
    trial_process(context, "worker")
    other = Slots(tmp_path, 1)
    trial_process(context, "trial").slots.free(0)
    assert other.take(timeout_seconds=0) == (0, 0)


def test_a_workload_that_cannot_be_imported_is_a_failed_trial(tmp_path: Path) -> None:
    outcome = run(trial_context(tmp_path, workload="no_such_module:Curve"))
    assert outcome.state == "failed"
    assert "no_such_module" in (outcome.cause or "")
    (end,) = events_of(tmp_path, schema.TrialEnded)
    assert end.charged == "user"  # so a resume repeats the run once the module is there


def test_the_cpu_clock_is_read_where_busy_time_begins_and_ends(tmp_path: Path) -> None:
    burnt_ns = 30_000_000

    def report(epoch: int, metrics: Mapping[str, float]) -> Decision:
        clock = CpuClock()
        while clock.used_ns() < burnt_ns:
            pass
        return Decision.CONTINUE

    run(trial_context(tmp_path), report=report)
    (started,) = events_of(tmp_path, schema.TrialStarted)
    (ended,) = events_of(tmp_path, schema.TrialEnded)
    epochs, reports = list(events_of(tmp_path, schema.Epoch)), list(events_of(tmp_path, schema.Reported))
    assert started.process_cpu_ns > 0
    assert started.cpus_allowed == len(os.sched_getaffinity(0))
    readings = [event.cpu_ns for pair in zip(epochs, reports, strict=True) for event in pair]
    assert readings == sorted(readings)
    assert readings[-1] <= ended.cpu_ns
    for epoch, reported in zip(epochs, reports, strict=True):
        assert burnt_ns <= reported.cpu_ns - epoch.cpu_ns < burnt_ns + 20_000_000
    assert ended.cpu_ns - 3 * burnt_ns < 100_000_000


def test_children_of_the_workload_count_as_the_trial(tmp_path: Path) -> None:
    burnt_ns = 100_000_000
    run(trial_context(tmp_path, workload="trial_runs:WithChild", workload_options={"cpu_seconds": burnt_ns / 1e9}))
    first, *_, last = events_of(tmp_path, schema.Epoch)
    (end,) = events_of(tmp_path, schema.TrialEnded)
    assert first.cpu_ns >= burnt_ns
    assert last.cpu_ns >= 3 * burnt_ns
    assert end.cpu_ns >= last.cpu_ns


def test_a_trial_that_fails_because_the_kernel_ended_its_child_is_out_of_memory(tmp_path: Path) -> None:
    group = tmp_path / "group"
    group.mkdir()
    (group / "memory.events").write_text("oom_kill 2\n")  # of a trial before it on the slot
    limits = {"limits": (SlotLimits(memory_cgroup=str(group)),), "memory_bytes": 50_000_000_000}
    for options in ({"group": str(group)}, {}):
        run(trial_context(tmp_path, workload="trial_runs:LosesChild", workload_options=options, **limits), str(len(options)))
    found, own = [(event.cause, event.charged) for event in events_of(tmp_path, schema.TrialEnded)]
    assert found == ("out of memory: more than 50000 MB (control group)", "workload")
    assert (tmp_path / "kills" / "slot-0").read_text() == "3"
    place = f"(trial_runs.py:{line_of('a worker process has died')})"
    assert own == (f"BrokenPipeError: a worker process has died {place}", "workload")  # negative control
