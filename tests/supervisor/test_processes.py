"""Finding and ending processes by mark, session and pid."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tuneoff.supervisor import processes

WAIT = "import sys; print('up', flush=True); sys.stdin.read()"


@pytest.fixture
def marked() -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "TUNEOFF_TEST_MARK": f"m-{os.getpid()}"}
    child = subprocess.Popen(
        [sys.executable, "-c", WAIT],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "up\n"
    yield child
    child.kill()
    child.communicate()


def test_a_process_is_found_by_its_mark_and_by_its_session(marked: subprocess.Popen[str]) -> None:
    assert processes.with_mark("TUNEOFF_TEST_MARK", f"m-{os.getpid()}") == [marked.pid]
    assert processes.in_session(marked.pid) == [marked.pid]
    assert marked.pid in processes.children(os.getpid())
    assert processes.with_mark("TUNEOFF_TEST_MARK", "another") == []


def test_end_all_ends_exactly_what_is_found(marked: subprocess.Popen[str]) -> None:
    killed = processes.end_all(lambda: processes.with_mark("TUNEOFF_TEST_MARK", f"m-{os.getpid()}"))
    assert killed == [marked.pid]
    assert marked.wait(10) == -9


def test_a_zombie_and_a_reused_pid_are_not_alive(marked: subprocess.Popen[str]) -> None:
    assert processes.is_alive(marked.pid)
    assert not processes.is_alive(marked.pid, started_ns=1)
    marked.kill()
    os.waitid(os.P_PID, marked.pid, os.WEXITED | os.WNOWAIT)  # it has ended, but nobody has collected it
    assert not processes.is_alive(marked.pid)


def test_resident_memory_is_measured_and_that_of_a_dead_process_is_zero() -> None:
    assert processes.rss_bytes(os.getpid()) > 5_000_000
    assert 0 < processes.pss_bytes(os.getpid()) <= processes.rss_bytes(os.getpid()) * 1.1
    assert processes.rss_bytes(2**22 - 1) == 0
