"""Finding and ending processes by mark, session and pid."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.waiting_processes import WAIT, waiting
from tuneoff.base import processes


@pytest.fixture
def marked() -> Iterator[subprocess.Popen[str]]:
    with waiting(env={**os.environ, "TUNEOFF_TEST_MARK": f"m-{os.getpid()}"}, start_new_session=True) as child:
        yield child


def test_a_process_is_found_by_its_mark_and_by_its_session(marked: subprocess.Popen[str]) -> None:
    assert processes.with_mark("TUNEOFF_TEST_MARK", f"m-{os.getpid()}") == [marked.pid]
    assert processes.in_session(marked.pid) == [marked.pid]
    assert marked.pid in processes.children(os.getpid())
    assert processes.with_mark("TUNEOFF_TEST_MARK", "another") == []


def test_a_command_has_ended_when_its_process_has_and_not_when_its_output_is_closed() -> None:
    left = "sleep 100 & echo $!; echo problem >&2; exit 3"
    code, output, errors = processes.run_to_end(["sh", "-c", left])
    assert processes.is_alive(int(output)), "it keeps the output open"
    processes.kill(int(output))
    assert (code, errors) == (3, "problem\n")


def test_a_command_that_takes_too_long_is_killed() -> None:
    before = processes.children(os.getpid())
    with pytest.raises(TimeoutError, match=r"^it took longer than 0\.1 s$"):
        processes.run_to_end(["sleep", "100"], 0.1)
    assert processes.children(os.getpid()) == before


def test_end_all_ends_exactly_what_is_found(marked: subprocess.Popen[str]) -> None:
    killed = processes.end_all(lambda: processes.with_mark("TUNEOFF_TEST_MARK", f"m-{os.getpid()}"))
    assert killed == [marked.pid]
    assert marked.wait(10) == -9


def test_end_all_ends_what_is_below_without_mark_session_or_environment_but_not_what_is_spared(
    marked: subprocess.Popen[str],
) -> None:
    program = """
import subprocess, sys
for _ in range(2):
    child = subprocess.Popen(["sleep", "60"], env={}, stdout=subprocess.DEVNULL, start_new_session=True)
    print(child.pid, flush=True)
sys.stdin.read()
"""
    parent = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child, spared = int(parent.stdout.readline()), int(parent.stdout.readline())
    killed = processes.end_all(lambda: [parent.pid] if parent.poll() is None else [], spares=lambda pid: pid == spared)
    try:
        assert sorted(killed) == sorted([parent.pid, child])
        assert not processes.is_alive(child)
        assert processes.is_alive(spared)
        assert processes.stat_fields(spared)[0] != "T"  # type: ignore[index]
        assert marked.poll() is None
    finally:
        processes.kill(spared)
        parent.communicate()


def test_what_was_stopped_is_killed_where_the_time_is_over_meanwhile(marked: subprocess.Popen[str]) -> None:
    assert processes.end_all(lambda: [marked.pid], within_seconds=0) == [marked.pid]
    assert marked.wait(10) == -9


def test_what_never_comes_to_an_end_is_ended_for_a_limited_time(marked: subprocess.Popen[str]) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def find() -> list[int]:
        assert len(started) < 500, "still looking"
        started.append(subprocess.Popen(["sleep", "60"]))
        return [child.pid for child in started]

    try:
        assert processes.end_all(find, within_seconds=0.05) == [child.pid for child in started]
        assert {child.wait(10) for child in started} == {-9}
    finally:
        for child in started:
            child.kill()
            child.wait()


def test_a_process_is_found_by_a_file_that_it_has_open(marked: subprocess.Popen[str], tmp_path: Path) -> None:
    with (tmp_path / "log").open("w"):
        assert processes.openers(str(tmp_path / "log")) == [os.getpid()]
        assert processes.openers(str(tmp_path)) == []
    with (tmp_path / "log").open() as log:
        assert processes.openers(log.name) == [os.getpid()]


def test_a_zombie_and_a_reused_pid_are_not_alive(marked: subprocess.Popen[str]) -> None:
    assert processes.is_alive(marked.pid)
    assert not processes.is_alive(marked.pid, started_ns=1)
    marked.kill()
    os.waitid(os.P_PID, marked.pid, os.WEXITED | os.WNOWAIT)  # it has ended, but nobody has collected it
    assert not processes.is_alive(marked.pid)


def test_a_name_that_was_cut_within_a_character_hides_no_process() -> None:
    naming = "open('/proc/self/comm', 'wb').write(b') \\xd0'); print(flush=True); input()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", naming], stdin=pipe, stdout=pipe, start_new_session=True) as named:
        assert named.stdout is not None
        named.stdout.readline()
        assert processes.is_alive(named.pid)
        assert processes.in_session(named.pid) == [named.pid]
        began_ns = processes.process_started_ns(named.pid)
        assert processes.process_started_ns() <= began_ns <= time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        named.kill()
    assert processes.process_started_ns(named.pid) > began_ns  # it is gone


def test_resident_memory_is_measured_and_that_of_a_dead_process_is_zero() -> None:
    assert processes.rss_bytes(os.getpid()) > 5_000_000
    assert 0 < (processes.pss_bytes(os.getpid()) or 0) <= processes.rss_bytes(os.getpid()) * 1.1
    assert processes.rss_bytes(2**22 - 1) == 0


RAY = "Failed to connect to GCS within 60 seconds. GCS may have been killed."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("one\n  two \n\n---\n", "two"),
        (f"[2026-11-22 12:36:46,175 E 12756 12909] rpc_client.h:204: {RAY}\n", RAY),
        (f"[2026-11-22 12:36:46,175 E 12756 12909] (raylet) rpc_client.h:204: {RAY}", RAY),
        ("\x1b[31mred\x1b[0m", "red"),
        ("[1] it begins with a bracket", "[1] it begins with a bracket"),
        (f"{RAY} {'It is terminated. ' * 10}see https://docs.ray.io/en/latest/ray", f"{RAY} {'It is terminated. ' * 7}".strip()),
        ("word " * 50, f"{'word ' * 39}..."),
        ("x" * 300, f"{'x' * 196} ..."),
        ("\n \n", "it printed nothing"),
        ("e" * 70_000 + "\nthe end\n", "the end"),
    ],
)
def test_the_last_words_of_a_log_are_one_short_line(tmp_path: Path, text: str, words: str) -> None:
    log = tmp_path / "log.txt"
    log.write_text(text)
    assert processes.last_words(log) == words
    assert len(words) <= 200


def test_a_log_that_is_not_there_has_no_last_words(tmp_path: Path) -> None:
    assert processes.last_words(tmp_path / "none", otherwise="") == ""


def test_of_much_output_the_end_is_kept() -> None:
    assert len(processes.run_to_end(["sh", "-c", "head -c 3000000 /dev/zero; echo end"]).output) == 1_000_000


def test_a_command_line_is_cut_where_it_is_shown_and_nowhere_else() -> None:
    with waiting(WAIT, "x" * 200, "the-end") as long:
        assert len(processes.command_line(long.pid)) == 120
        assert processes.command_line(long.pid, None).endswith("x the-end")


@pytest.mark.parametrize("pid", [0, -1])
def test_what_stands_for_many_processes_is_no_pid(pid: int) -> None:
    for act in (processes.kill, processes.kill_tree, processes.in_session):
        with pytest.raises(ValueError, match=f"must have a number >= 1, but got {pid}"):
            act(pid)
