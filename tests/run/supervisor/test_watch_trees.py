"""The memory of a trial whose processes have processes of their own: counted once, ended together, and known as the cause."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.waiting_processes import started
from run.supervisor.watching import watched
from trial_runs import events_of
from tuneoff.base import processes
from tuneoff.record.events import schema
from tuneoff.run.trial.faults import kill_cause, out_of_memory_kills
from waiting import until

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


def test_all_below_a_process_are_found(grandparent: subprocess.Popen[str]) -> None:
    below = processes.descendants(grandparent.pid)
    assert len(below) == 2
    assert len(processes.children(grandparent.pid)) == 1  # negative control: children alone are not all
    assert processes.rss_bytes(below[-1]) > 80_000_000


def test_the_memory_of_a_child_s_child_counts_and_it_ends_with_the_trial(
    tmp_path: Path, grandparent: subprocess.Popen[str]
) -> None:
    below = processes.descendants(grandparent.pid)
    trial_watch, _ = watched(tmp_path, grandparent.pid, memory=70_000_000)
    trial_watch.look()
    assert grandparent.wait(5) == -9
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
    assert grandparent.wait(5) == -9
    (killed,) = events_of(tmp_path, schema.TrialKilled)
    assert (killed.cause, killed.charged) == ("out of memory: more than 1000 MB (control group)", "workload")


def test_an_end_that_was_seen_late_is_uncertain_by_the_time_since_its_process_was_seen_alive(
    tmp_path: Path, grandparent: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuneoff.run.supervisor.watch.SETTLE_NS", 0)
    trial_watch, tracker = watched(tmp_path, grandparent.pid)
    trial_watch.look()
    seen = tracker.open["t0", 1].seen_ns
    assert seen is not None
    ended(grandparent)
    trial_watch.look()
    trial_watch.look()
    (end,) = events_of(tmp_path, schema.TrialEnded)
    assert end.uncertainty_ns == end.t - seen
