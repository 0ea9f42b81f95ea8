"""Processes of a trial: its children, their CPU time with its own, and peak memory."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tuneoff.base.processes import children, end_all, is_alive, kill, kill_tree, process_started_ns
from tuneoff.run.trial.children import left_by
from tuneoff.run.trial.trial_process import CpuClock, peak_rss_bytes
from waiting import until

ENDING = """
import concurrent.futures, multiprocessing, os, subprocess, sys, time
from pathlib import Path
from tuneoff.base.processes import is_alive, is_resource_tracker
from tuneoff.run.trial.children import end_children, hold_children, own_children

def living(): return {pid for pid in own_children() if is_alive(pid) and not is_resource_tracker(pid)}

KEPT = []

def start(context, is_kept):
    context.Process(target=time.sleep, args=(1000,)).start()
    if is_kept:
        KEPT.extend([context.Pool(2), concurrent.futures.ProcessPoolExecutor(2, mp_context=context), context.Manager()])
        KEPT[0].map(abs, [1]); KEPT[1].submit(abs, 1).result()
    subprocess.run([sys.executable, "-c", "import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True)"])

if __name__ == "__main__":
    hold_children("e")
    before = subprocess.Popen(["sleep", "1000"])  # as a module may at its import
    for method in ("fork", "forkserver"):
        for is_kept in (False, True):
            spared = own_children()
            start(multiprocessing.get_context(method), is_kept)
            assert len(living() - {before.pid}) >= 2
            assert end_children(spared) == is_kept
            KEPT.clear()
            assert living() == {before.pid}, living()
    spared = own_children()
    KEPT.append(multiprocessing.Pool(2))
    assert end_children(spared, keeps=True)
    assert KEPT[0].map(abs, [-1]) == [1]
    assert not end_children(own_children())
    end_children()
    assert living() == set()
    print("ended")
"""
LEAVING = """
import multiprocessing, os, subprocess, sys, time
from tuneoff.run.trial.children import hold_children

def main():
    hold_children(sys.argv[1])
    context = multiprocessing.get_context("spawn")
    lock = context.Lock()  # a name in /dev/shm, which the resource tracker removes
    program = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    forked = os.fork()
    if forked == 0:
        time.sleep(1000)
    print(program.pid, forked, lock._semlock.name, flush=True)
    time.sleep(1000)

if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
def test_what_a_training_leaves_is_ended_and_what_was_there_before_stays(tmp_path: Path) -> None:
    (tmp_path / "ending.py").write_text(ENDING)
    done = subprocess.run([sys.executable, "ending.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ended\n"


def test_what_a_dead_process_has_left_is_found_and_nothing_of_others(tmp_path: Path) -> None:
    (tmp_path / "leaving.py").write_text(LEAVING)
    processes = [
        subprocess.Popen([sys.executable, "leaving.py", name], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        for name in ("dies", "killed", "stays")
    ]
    left, names = [], []
    for process in processes:
        assert process.stdout is not None
        program, forked, name = process.stdout.readline().split()
        left.append({int(program), int(forked)})
        names.append(Path(f"/dev/shm/sem.{name[1:]}"))
    dies, killed, stays = processes
    assert all(name.exists() for name in names)
    dies.kill()
    dies.wait()
    assert left[0] <= set(left_by("dies", dies.pid))
    assert set(end_all(lambda: left_by("dies", dies.pid))) == left[0]
    kill_tree(killed.pid)
    killed.wait()
    until(lambda: not any(is_alive(pid) for pid in left[0] | left[1]))
    until(lambda: not names[0].exists() and not names[1].exists())
    assert all(is_alive(pid) for pid in left[2])
    kill_tree(stays.pid)
    stays.wait()
    until(lambda: not names[2].exists() and not any(is_alive(pid) for pid in left[2]))


MEGABYTE = 10**6
BURN = """
import subprocess, sys, time
while time.process_time() < float(sys.argv[1]):
    pass
if len(sys.argv) > 3:
    subprocess.run([sys.executable, *sys.orig_argv[1:3], *sys.argv[3:]], check=True)
print("burnt", flush=True)
if sys.argv[2] == "stay":
    sys.stdin.read()
"""
SECONDS, SLACK_SECONDS = 0.2, 0.1  # a child burns so much, and needs up to so much more to start and end
PRINT_BOTH = """
import resource
from tuneoff.run.trial.trial_process import peak_rss_bytes
print(peak_rss_bytes(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def test_what_is_left_by_a_process_that_leads_a_group_and_no_session_is_no_one_else_of_that_session(tmp_path: Path) -> None:
    """Ray's workers lead groups, in the session of the coordinator: a child that outlives one must not take that with it."""
    (tmp_path / "leaving.py").write_text(LEAVING)
    starting = "import subprocess, sys; subprocess.Popen([sys.executable, 'leaving.py', 'ray'], process_group=0).wait(); input()"
    command, pipe = [sys.executable, "-c", starting], subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as leader:
        assert leader.stdout is not None
        left = {int(word) for word in leader.stdout.readline().split()[:2]}
        (dead,) = children(leader.pid)
        began_ns = process_started_ns(dead)
        kill(dead)
        until(lambda: not is_alive(dead))
        assert left <= set(left_by("ray", dead, began_ns))
        assert set(end_all(lambda: left_by("ray", dead, began_ns))) == left
        assert is_alive(leader.pid)
        leader.kill()


@pytest.mark.slow
def test_memory_that_was_freed_again_counts() -> None:
    before = peak_rss_bytes()
    ballast = bytearray(b"x" * (before + 100 * MEGABYTE))
    del ballast
    assert peak_rss_bytes() >= before + 100 * MEGABYTE


@pytest.mark.slow
def test_a_small_process_of_a_large_one_has_its_own_peak() -> None:
    ballast = bytearray(b"x" * (300 * MEGABYTE))
    done = subprocess.run([sys.executable, "-c", PRINT_BOTH], capture_output=True, text=True, check=True)
    peak, kernels = (int(text) for text in done.stdout.split())
    assert len(ballast) > 0
    assert peak < 100 * MEGABYTE
    assert kernels > 290 * MEGABYTE  # what would have been recorded
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > 290 * MEGABYTE


@contextmanager
def child(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process that burns CPU time, then ends or waits for its standard input; it has burnt when the block begins."""
    process = subprocess.Popen(
        [sys.executable, "-c", BURN, str(SECONDS), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "burnt\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def is_zombie(pid: int) -> bool:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize("end", ["stay", "leave"])
def test_a_child_counts_while_it_lives_and_once_when_it_was_waited_for(end: str) -> None:
    clock = CpuClock()
    with child(end) as process:
        if end == "leave":
            until(lambda: is_zombie(process.pid))
        there = clock.used_ns()
        assert SECONDS * 1e9 <= there < (SECONDS + SLACK_SECONDS) * 1e9
    assert there <= clock.used_ns() < there + SLACK_SECONDS * 1e9


def test_a_child_that_a_child_waited_for_counts() -> None:
    clock = CpuClock()
    with child("stay", str(SECONDS), "leave"):
        assert 2 * SECONDS * 1e9 - 20e6 <= clock.used_ns() < 2 * (SECONDS + SLACK_SECONDS) * 1e9


def test_a_living_grandchild_counts() -> None:
    clock = CpuClock()
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1], sys.argv[2], 'stay'])"
    with subprocess.Popen(
        [sys.executable, "-c", script, BURN, str(SECONDS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "burnt\n"
        assert clock.used_ns() >= SECONDS * 1e9
        process.communicate()


def test_only_a_process_with_children_looks_for_them_in_the_file_system() -> None:
    script = """
import subprocess, sys
from tuneoff.run.trial import children
from tuneoff.run.trial.trial_process import process_tree_cpu_ns
looked = []
children.children = lambda pid: looked.append("self") or []
process_tree_cpu_ns()
with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
    print(looked)
    process_tree_cpu_ns()
    process.communicate(b"\\n")
print(looked)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "['self']"]
