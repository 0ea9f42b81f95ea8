"""Limits on trials and the ends that the supervisor writes."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders.event_logs import Log
from run.supervisor.watching import watched
from trial_runs import events_of
from tuneoff.base import clock
from tuneoff.record.events import schema
from tuneoff.record.layout import POD
from tuneoff.run.supervisor import watch
from tuneoff.run.trial.faults import asked_kills, kill_cause, watched_memory


@pytest.mark.parametrize(
    ("limits", "limit", "cause"),
    [
        ({"trial_seconds": 9.0}, "time", "timed out: longer than 9 s"),
        ({"silence_seconds": 4.0}, "time", "timed out: silent for 4 s"),
        ({"memory": 50_000_000}, "memory", "out of memory: more than 50 MB (watchdog)"),
    ],
)
def test_a_trial_over_a_limit_is_killed_after_a_note(
    tmp_path: Path, process: subprocess.Popen[str], limits: dict[str, Any], limit: str, cause: str
) -> None:
    trial_watch, _ = watched(tmp_path, process.pid, **limits)
    trial_watch.look()
    assert process.wait(5) == -9
    assert kill_cause(tmp_path, "t0", 1) == cause
    (killed,) = events_of(tmp_path, schema.TrialKilled)
    assert (killed.trial, killed.cause, killed.charged, killed.limit) == ("t0", cause, "workload", limit)


@pytest.mark.parametrize(("is_reported", "charged"), [(True, "framework"), (False, "workload")])
def test_silence_in_the_report_is_charged_to_the_framework(
    tmp_path: Path, process: subprocess.Popen[str], is_reported: bool, charged: schema.Charged
) -> None:
    trial_watch, tracker = watched(tmp_path, process.pid, silence_seconds=4.0)
    then = tracker.open["t0", 1].last_event_ns
    epoch = schema.Epoch(seq=1, t=then, trial="t0", epoch=1, metrics={}, train_ns=1, validate_ns=1, is_reported=is_reported)
    tracker.take(msgspec.structs.replace(Log().coordinator.process, boot_id=clock.boot_id()), epoch)
    trial_watch.look()
    (killed,) = events_of(tmp_path, schema.TrialKilled)
    assert (killed.charged, killed.limit) == (charged, "time")


def test_a_trial_on_another_host_is_alive_until_its_adapter_sees_its_death_and_is_killed_there(
    tmp_path: Path, process: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "SETTLE_NS", 0)
    trial_watch, tracker = watched(tmp_path, process.pid, memory=1)
    attempt = tracker.open["t0", 1]
    attempt.boot_id, attempt.pid = "another", 2**30  # no such process here
    trial_watch.look()
    assert (attempt.gone_since_ns, attempt.killed) == (None, False)
    attempt.started_ns = -(10**18)  # monotonic time begins with the machine
    trial_watch.look()
    (killed,) = events_of(tmp_path, schema.TrialKilled)
    assert killed.limit == "time"
    assert asked_kills(tmp_path, "another") == [(2**30, attempt.process_started_ns)]
    here = msgspec.structs.replace(Log().coordinator.process, boot_id=clock.boot_id())
    tracker.take(here, schema.WorkerDied(seq=2, t=clock.monotonic_ns(), trial="t0", cause="its node died"))
    trial_watch.look()
    (ended,) = events_of(tmp_path, schema.TrialEnded)
    assert (ended.by, ended.state) == ("supervisor", "failed")


def test_a_trial_on_another_host_is_killed_for_its_memory_as_whoever_looks_after_that_host_says(
    tmp_path: Path, process: subprocess.Popen[str]
) -> None:
    trial_watch, tracker = watched(tmp_path, process.pid, memory=50_000_000)
    attempt = tracker.open["t0", 1]
    attempt.boot_id, attempt.pid = "another", 2**30  # no such process here
    trial_watch.look()
    (there,) = watched_memory(tmp_path, "another")
    assert (there.pid, there.limit_bytes) == (2**30, 50_000_000)
    assert watched_memory(tmp_path, clock.boot_id()) == []
    there.over.write_text("50000000 t7 1")  # of the trial before in that process
    trial_watch.look()
    assert not attempt.killed
    there.over.write_text(there.asked)
    trial_watch.look()
    (killed,) = events_of(tmp_path, schema.TrialKilled)
    assert (killed.cause, killed.charged, killed.limit) == ("out of memory: more than 50 MB (watchdog)", "workload", "memory")
    assert asked_kills(tmp_path, "another") == [(2**30, attempt.process_started_ns)]


def test_a_process_elsewhere_is_not_killed_for_a_trial_that_ended_since(tmp_path: Path, process: subprocess.Popen[str]) -> None:
    trial_watch, tracker = watched(tmp_path, process.pid, ended_since=True, trial_seconds=9.0)
    tracker.open["t0", 1].boot_id = "another"
    trial_watch.look()
    assert (asked_kills(tmp_path, "another"), list(events_of(tmp_path, schema.TrialKilled))) == ([], [])


def test_a_process_whose_trial_ended_as_it_was_to_be_killed_goes_on_with_its_next_one(
    tmp_path: Path, process: subprocess.Popen[str]
) -> None:
    trial_watch, _ = watched(tmp_path, process.pid, ended_since=True, trial_seconds=9.0)
    trial_watch.look()
    process.communicate("", timeout=5)  # it runs on to its own end
    assert process.returncode == 0
    assert kill_cause(tmp_path, "t0", 1) is None
    assert list(events_of(tmp_path, schema.TrialKilled)) == []


def test_the_watchdog_leaves_a_trial_in_a_control_group_to_the_kernel_for_a_moment(
    tmp_path: Path, process: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trial_watch, _ = watched(tmp_path, process.pid, cgroups=[str(tmp_path / "group")], memory=50_000_000)
    trial_watch.look()
    assert kill_cause(tmp_path, "t0", 1) is None
    monkeypatch.setattr(watch, "KERNEL_NS", 0)
    trial_watch.look()  # the kernel did nothing: the process could not enter its group, say
    assert process.wait(5) == -9
    assert kill_cause(tmp_path, "t0", 1) == "out of memory: more than 50 MB (watchdog)"


def test_a_trial_that_the_kernel_ended_was_out_of_memory_in_its_control_group(
    tmp_path: Path, process: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "SETTLE_NS", 0)
    group = tmp_path / "group"
    group.mkdir()
    trial_watch, _ = watched(tmp_path, process.pid, cgroups=[str(group)], memory=50_000_000)
    trial_watch.look()
    (group / "memory.events").write_text("oom 1\noom_kill 1\n")
    process.kill()
    process.wait()
    trial_watch.look()
    trial_watch.look()
    (killed,) = events_of(tmp_path, schema.TrialKilled)
    assert (killed.cause, killed.limit) == ("out of memory: more than 50 MB (control group)", "memory")


def test_a_death_before_the_kernel_s_kill_on_the_same_slot_is_not_charged_to_memory(
    tmp_path: Path, process: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    group = tmp_path / "group"
    group.mkdir()
    trial_watch, tracker = watched(tmp_path, process.pid, cgroups=[str(group)], memory=10**9)
    process.kill()
    process.wait()
    trial_watch.look()
    (group / "memory.events").write_text("oom_kill 1\n")  # of the trial that followed on the slot
    tracker.open["t1", 1] = replace(tracker.open["t0", 1], trial="t1", gone_since_ns=None)
    trial_watch.look()
    monkeypatch.setattr(watch, "SETTLE_NS", 0)
    trial_watch.look()
    assert [event.trial for event in events_of(tmp_path, schema.TrialKilled)] == ["t1"]
    assert [event.trial for event in events_of(tmp_path, schema.TrialEnded)] == ["t0", "t1"]


def test_a_trial_within_its_limits_is_left_alone(tmp_path: Path, process: subprocess.Popen[str]) -> None:
    trial_watch, _ = watched(tmp_path, process.pid, trial_seconds=100.0, silence_seconds=100.0, memory=10**9)
    trial_watch.look()
    assert process.poll() is None
    assert kill_cause(tmp_path, "t0", 1) is None


def test_a_trial_in_a_pod_is_its_adapter_s_matter_until_the_run_is_over(
    tmp_path: Path, process: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "SETTLE_NS", 0)
    trial_watch, tracker = watched(tmp_path, process.pid, memory=1, trial_seconds=1.0, silence_seconds=1.0)
    tracker.open["t0", 1].role = POD
    trial_watch.look()
    assert process.poll() is None
    process.kill()
    process.wait()
    trial_watch.look()
    trial_watch.look()
    assert list(events_of(tmp_path, schema.TrialEnded)) == []
    trial_watch.bury_all()
    (end,) = events_of(tmp_path, schema.TrialEnded)
    assert (end.state, end.by) == ("failed", "supervisor")


@pytest.mark.parametrize(
    ("epochs", "stop_epoch", "state"), [(1, None, "failed"), (3, None, "completed"), (2, 2, "pruned"), (3, 2, "completed")]
)
def test_the_end_of_a_dead_trial_is_written_once_it_has_settled(
    tmp_path: Path,
    process: subprocess.Popen[str],
    monkeypatch: pytest.MonkeyPatch,
    epochs: int,
    stop_epoch: int | None,
    state: str,
) -> None:
    monkeypatch.setattr(watch, "SETTLE_NS", 0)
    trial_watch, tracker = watched(tmp_path, process.pid)
    attempt = tracker.open["t0", 1]
    attempt.epochs, attempt.stop_epoch = epochs, stop_epoch
    os.kill(process.pid, 9)
    process.wait()
    trial_watch.look()
    assert list(events_of(tmp_path, schema.TrialEnded)) == []
    trial_watch.look()
    (end,) = events_of(tmp_path, schema.TrialEnded)
    assert (end.state, end.epochs, end.by) == (state, epochs, "supervisor")
