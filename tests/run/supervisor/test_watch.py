"""The watchdog: limits, deaths and exits, and the trees of trials' processes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders.event_logs import Log
from builders.waiting_processes import started
from run.supervisor.watching import experiment, watched
from trial_runs import events_of
from tuneoff.base import clock, processes
from tuneoff.base.layout import POD
from tuneoff.base.processes import process_started_ns
from tuneoff.record.events import schema
from tuneoff.run.progress import Tracker
from tuneoff.run.supervisor import watch
from tuneoff.run.supervisor.watch import TrialWatch
from tuneoff.run.trial.faults import asked_kills, kill_cause, out_of_memory_kills, watched_memory
from waiting import until


@pytest.fixture(autouse=True)
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of what has died is written at the next look."""
    monkeypatch.setattr(watch, "SETTLE_NS", 0)


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
    assert process.wait(60) == -9
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
    tmp_path: Path, process: subprocess.Popen[str]
) -> None:
    trial_watch, tracker = watched(tmp_path, process.pid, memory=1)
    attempt = tracker.open["t0", 1]
    attempt.boot_id, attempt.pid = "another", 2**30  # no such process here
    trial_watch.look()
    assert (attempt.gone_since_ns, attempt.killed) == (None, False)
    attempt.started_ns = -(10**18)  # monotonic time begins with the machine
    trial_watch.look()
    (killed,) = events_of(tmp_path, schema.TrialKilled)
    assert killed.limit == "time"
    (asked,) = asked_kills(tmp_path, "another")
    assert asked[1:] == (2**30, attempt.process_started_ns, ("t0", 1))
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
    there.over.write_text(there.request.replace("t0", "t7"))  # of the trial before in that process
    trial_watch.look()
    assert not attempt.killed
    there.over.write_text(there.request)
    trial_watch.look()
    (killed,) = events_of(tmp_path, schema.TrialKilled)
    assert (killed.cause, killed.charged, killed.limit) == ("out of memory: more than 50 MB (watchdog)", "workload", "memory")
    (asked,) = asked_kills(tmp_path, "another")
    assert asked[1:] == (2**30, attempt.process_started_ns, ("t0", 1))


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
    process.communicate("", timeout=60)  # it runs on to its own end
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
    assert process.wait(60) == -9
    assert kill_cause(tmp_path, "t0", 1) == "out of memory: more than 50 MB (watchdog)"


def test_a_trial_that_the_kernel_ended_was_out_of_memory_in_its_control_group(
    tmp_path: Path, process: subprocess.Popen[str]
) -> None:
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
    tmp_path: Path, process: subprocess.Popen[str]
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
    del tracker.open["t0", 1]  # its end was read
    trial_watch.look()
    assert [event.trial for event in events_of(tmp_path, schema.TrialKilled)] == ["t1"]
    assert [event.trial for event in events_of(tmp_path, schema.TrialEnded)] == ["t0", "t1"]


def test_a_trial_in_a_pod_is_its_adapter_s_matter_until_the_run_is_over(tmp_path: Path, process: subprocess.Popen[str]) -> None:
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
    ("epochs", "stop_epoch", "killed", "state"),
    [
        (1, None, False, "failed"),
        (3, None, False, "completed"),
        (2, 2, False, "pruned"),
        (2, 2, True, "failed"),
        (3, 2, False, "completed"),
        (3, 2, True, "completed"),
    ],
)
def test_the_end_of_a_dead_trial_is_written_once_it_has_settled(
    tmp_path: Path,
    process: subprocess.Popen[str],
    epochs: int,
    stop_epoch: int | None,
    killed: bool,
    state: str,
) -> None:
    trial_watch, tracker = watched(tmp_path, process.pid)
    attempt = tracker.open["t0", 1]
    attempt.epochs, attempt.stop_epoch, attempt.killed = epochs, stop_epoch, killed
    os.kill(process.pid, 9)
    process.wait()
    trial_watch.look()
    assert list(events_of(tmp_path, schema.TrialEnded)) == []
    trial_watch.look()
    (end,) = events_of(tmp_path, schema.TrialEnded)
    assert (end.state, end.epochs, end.by) == (state, epochs, "supervisor")


@pytest.mark.parametrize(
    ("charged", "limit", "is_final"), [("framework", None, 2), ("workload", None, 1), ("framework", "time", 1)]
)
def test_a_trial_has_failed_for_good_when_it_is_not_tried_again(
    tmp_path: Path, charged: schema.Charged, limit: schema.Limit | None, is_final: int
) -> None:
    _, tracker = watched(tmp_path, os.getpid(), retries=1)
    first, process = tracker.open["t0", 1], Log().coordinator.process
    if limit is not None:
        tracker.take(process, schema.TrialKilled(seq=1, t=1, trial="t0", cause="x", charged=charged, limit=limit))
    for attempt in (1, 2):
        tracker.open["t0", attempt] = replace(first, attempt=attempt)
        end = schema.TrialEnded(seq=2, t=2, trial="t0", attempt=attempt, state="failed", epochs=0, charged=charged)
        tracker.take(process, end)
        assert len(tracker.failed_for_good) == (attempt >= is_final)


def test_a_retry_is_no_further_trial_what_it_restores_no_further_epoch_and_what_is_worse_no_incumbent(tmp_path: Path) -> None:
    _, tracker = watched(tmp_path, os.getpid())
    first, process = tracker.open["t0", 1], Log().coordinator.process
    for attempt, value, best in ((1, 0.5, 0.5), (2, 0.2, 0.2), (3, 0.4, 0.2)):
        tracker.take(process, schema.TrialSubmitted(seq=1, t=1, trial="t0", attempt=attempt, configuration={}))
        epoch = schema.Epoch(seq=2, t=1, trial="t0", epoch=1, metrics={}, train_ns=1, validate_ns=1, restored=attempt > 1)
        tracker.take(process, epoch)
        tracker.open["t0", attempt] = replace(first, attempt=attempt, value=value)
        tracker.take(process, schema.TrialEnded(seq=3, t=2, trial="t0", attempt=attempt, state="completed", epochs=3))
        assert (tracker.submitted, tracker.epochs, tracker.incumbent) == (1, 1, best)


def living(tmp_path: Path, process: subprocess.Popen[str], boot_id: str | None = None) -> tuple[TrialWatch, Tracker, str]:
    """A process that was started for a trial, of which only its first line is known; and its name."""
    trial_watch, tracker = watched(tmp_path, process.pid)
    tracker.open.clear()
    writer = Log().process("trial", 0, pid=process.pid, boot=boot_id or clock.boot_id())
    header = msgspec.structs.replace(writer.process, process_started_ns=process_started_ns(process.pid))
    tracker.take(header, header)
    return trial_watch, tracker, header.name


def exits_in(folder: Path) -> list[schema.ProcessExited]:
    return list(events_of(folder, schema.ProcessExited))


def test_the_exit_of_a_trial_s_process_is_timed_when_it_happens_and_not_when_it_is_looked_for(
    tmp_path: Path, process: subprocess.Popen[str]
) -> None:
    """It may have had no attempt: it then ended in its imports."""
    trial_watch, _, name = living(tmp_path, process)
    trial_watch.look()
    assert exits_in(tmp_path) == []
    before = clock.monotonic_ns()
    process.kill()
    process.wait()
    until(lambda: trial_watch._exits.gone)
    looked_for = clock.monotonic_ns()
    trial_watch.look()
    (gone,) = exits_in(tmp_path)
    assert gone.process == name
    assert before <= gone.t <= looked_for
    trial_watch.bury_all()
    assert len(exits_in(tmp_path)) == 1


@pytest.mark.parametrize("boot_id", [None, "another"])
def test_an_exit_just_before_the_run_s_end_is_written_unless_another_kernel_s_process_has_that_pid(
    tmp_path: Path, process: subprocess.Popen[str], boot_id: str | None
) -> None:
    trial_watch, _, name = living(tmp_path, process, boot_id)
    trial_watch.look()
    process.kill()
    process.wait()
    trial_watch.bury_all()
    assert [one.process for one in exits_in(tmp_path)] == ([name] if boot_id is None else [])


@pytest.mark.parametrize(("role", "arrived"), [("trial", 1), ("pod", 1), ("worker", 0), ("coordinator", 0)])
def test_only_a_process_that_was_started_for_one_trial_is_expected_to_exit(role: str, arrived: int) -> None:
    tracker = Tracker(experiment=experiment(), run_id="r")
    writer = Log().process(role, 0)
    for event in writer.events:
        tracker.take(writer.process, event)
    assert len(tracker.arrived) == arrived


BLOCK = "block = bytearray(b'x') * 80_000_000; print('up', flush=True); import sys; sys.stdin.read()"
CHILD = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {script!r}]).returncode)"
GRANDCHILD = CHILD.format(script=CHILD.format(script=BLOCK))
# tells of its child's death, as a trial that waits for one would
MOURNER = """import subprocess, sys
subprocess.run([sys.executable, "-c", {script!r}])
open({path!r}, "w").close()
sys.stdin.read()
"""
FORKED = """import mmap, os, signal, sys
shared = mmap.mmap(-1, 80_000_000)
shared.write(b"x" * 80_000_000)
for _ in range(4):
    if os.fork() == 0:
        sum(shared[position] for position in range(0, 80_000_000, 4096))
        os.write(1, b"up\\n")
        signal.pause()
sys.stdin.read()
"""


def ended(process: subprocess.Popen[str]) -> None:
    processes.kill_tree(process.pid)
    process.communicate()


@pytest.fixture
def grandparent() -> Iterator[subprocess.Popen[str]]:
    process = started(GRANDCHILD)
    yield process
    ended(process)


def test_the_memory_of_a_child_s_child_counts_and_it_ends_with_the_trial(
    tmp_path: Path, grandparent: subprocess.Popen[str]
) -> None:
    below = processes.descendants(grandparent.pid)
    trial_watch, _ = watched(tmp_path, grandparent.pid, memory=70_000_000)
    trial_watch.look()
    assert grandparent.wait(60) == -9
    assert kill_cause(tmp_path, "t0", 1) == "out of memory: more than 70 MB (watchdog)"
    until(lambda: not any(map(processes.is_alive, below)))  # they are someone else's children now


def test_a_process_is_killed_before_those_below_it_so_it_cannot_tell_their_death_as_its_own_fault(tmp_path: Path) -> None:
    told = tmp_path / "told"
    process = started(MOURNER.format(script=BLOCK, path=str(told)))
    processes.kill_tree(process.pid)
    process.communicate()
    assert not told.exists()
    process = started(MOURNER.format(script=BLOCK, path=str(told)))  # negative control: the child alone
    (child,) = processes.children(process.pid)
    processes.kill(child)
    until(told.exists)
    ended(process)


def test_pages_that_forked_processes_share_count_once(tmp_path: Path) -> None:
    process = started(FORKED, lines=4)
    try:
        pids = [process.pid, *processes.descendants(process.pid)]
        assert sum(map(processes.rss_bytes, pids)) > 300_000_000  # negative control: by RSS alone it would be over
        trial_watch, _ = watched(tmp_path, process.pid, memory=250_000_000)
        trial_watch.look()
        assert process.poll() is None
        assert kill_cause(tmp_path, "t0", 1) is None
    finally:
        ended(process)


def test_a_trial_whose_child_the_kernel_ended_is_out_of_memory_though_it_lives(
    tmp_path: Path, grandparent: subprocess.Popen[str]
) -> None:
    group = tmp_path / "group"
    group.mkdir()
    (group / "memory.events").write_text("oom_kill 1\n")  # before the first look: perhaps of the trial before it on the slot
    trial_watch, _ = watched(tmp_path, grandparent.pid, memory=10**9, cgroups=[str(group)])
    trial_watch.look()
    trial_watch.look()
    assert out_of_memory_kills(group) == 1
    assert kill_cause(tmp_path, "t0", 1) is None
    (group / "memory.events").write_text("oom_kill 2\n")
    trial_watch.look()
    assert grandparent.wait(60) == -9
    (killed,) = events_of(tmp_path, schema.TrialKilled)
    assert (killed.cause, killed.charged) == ("out of memory: more than 1000 MB (control group)", "workload")


def test_an_end_that_was_seen_late_is_uncertain_by_the_time_since_its_process_was_seen_alive(
    tmp_path: Path, grandparent: subprocess.Popen[str]
) -> None:
    trial_watch, tracker = watched(tmp_path, grandparent.pid)
    trial_watch.look()
    seen = tracker.open["t0", 1].seen_ns
    assert seen is not None
    ended(grandparent)
    trial_watch.look()
    trial_watch.look()
    (end,) = events_of(tmp_path, schema.TrialEnded)
    assert end.uncertainty_ns == end.t - seen


def test_an_exit_that_came_before_anybody_looked_is_not_guessed(tmp_path: Path, process: subprocess.Popen[str]) -> None:
    trial_watch, tracker, _ = living(tmp_path, process)
    process.kill()
    process.wait()
    trial_watch.look()
    trial_watch.bury_all()
    assert exits_in(tmp_path) == []
    assert tracker.arrived == []
