"""CPU time of a process with its children, and peak memory."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tuneoff.run.trial.trial_process import CpuClock, peak_rss_bytes
from waiting import until

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


def test_own_time_counts_and_sleep_does_not() -> None:
    clock = CpuClock()
    time.sleep(0.1)
    assert clock.used_ns() < 50e6
    while clock.used_ns() < 100e6:
        pass
    assert clock.used_ns() < 150e6


@pytest.mark.parametrize("end", ["stay", "leave"])
def test_a_child_counts_while_it_lives_and_once_when_it_was_waited_for(end: str) -> None:
    clock = CpuClock()
    with child(end) as process:
        if end == "leave":
            until(lambda: is_zombie(process.pid))
        there = clock.used_ns()
        assert SECONDS * 1e9 <= there < (SECONDS + SLACK_SECONDS) * 1e9
    assert there <= clock.used_ns() < there + SLACK_SECONDS * 1e9


def test_what_a_child_used_before_the_clock_started_never_counts() -> None:
    with child("stay"):
        clock = CpuClock()
        assert clock.used_ns() < SLACK_SECONDS * 1e9
    assert clock.used_ns() < SLACK_SECONDS * 1e9


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
