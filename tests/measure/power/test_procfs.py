"""Reading /proc by hand."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from pathlib import Path

from tuneoff.base.processes import pss_bytes
from tuneoff.measure.power.procfs import HostClock, HostTimes, carries, parse_stat, read_stat

TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def test_a_name_with_blanks_and_brackets_does_not_shift_the_fields() -> None:
    line = b"7 (a) (b c) S 3 1 9 0 -1 0 0 0 0 0 11 12 13 14 20 0 1 0 500 0 2 0 0\n"
    stat = parse_stat(line)
    assert stat is not None
    assert (stat.name, stat.parent, stat.session, stat.started_ns) == ("a) (b c", 3, 9, 500 * TICK)
    assert (stat.cpu_ns, stat.children_cpu_ns) == (23 * TICK, 27 * TICK)


def test_what_is_no_stat_line_is_nothing() -> None:
    assert parse_stat(b"") is None
    assert parse_stat(b"7 (cut off) S 3") is None


def test_own_stat_agrees_with_what_the_process_knows_of_itself() -> None:
    stat = read_stat("self")
    assert stat is not None
    assert (stat.parent, stat.session) == (os.getppid(), os.getsid(0))
    assert abs(stat.cpu_ns - time.process_time_ns()) < 100_000_000


def test_a_process_that_is_not_there_has_no_stat_no_mark_and_no_memory(tmp_path: Path) -> None:
    assert read_stat(7, str(tmp_path)) is None
    assert not carries(7, b"A=b", str(tmp_path))
    assert pss_bytes(7, str(tmp_path)) is None


def test_a_mark_is_a_whole_line_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "environ").write_bytes(b"RUN=abc\0X=RUN=ab\0")
    assert carries(7, b"RUN=abc", str(tmp_path))
    assert not carries(7, b"RUN=ab", str(tmp_path))


def read(folder: Path, text: str, usable: Collection[int] = ()) -> HostTimes:
    """Return what a host says whose /proc/stat is so."""
    (folder / "stat").write_text(text)
    host = HostClock(folder, usable)
    times = host.read()
    host.close()
    return times


def test_the_host_s_busy_time_leaves_out_idle_waiting_and_steal_and_counts_guests_once(tmp_path: Path) -> None:
    times = read(tmp_path, "cpu  100 20 30 5000 600 4 5 70 8 9\ncpu0 1 2\nintr 5 6\nprocesses 1234\nprocs_running 1\n")
    assert (times.busy_ns, times.steal_ns, times.forks) == (159 * TICK, 70 * TICK, 1234)


def test_the_busy_time_of_chosen_processors_is_told_apart(tmp_path: Path) -> None:
    lines = ("cpu  9 0 9 9", "cpu0 1 0 1 5", "cpu1 2 0 3 2", "cpu10 6 0 5 2")
    for usable, busy in ({1}, 5), ({0, 10}, 13), ((), None):
        times = read(tmp_path, "".join(f"{line} 0 0 0 0 0 0\n" for line in lines), usable)
        assert times.busy_ns == 18 * TICK
        assert times.usable_busy_ns == (None if busy is None else busy * TICK)


def test_a_long_stat_file_is_read_to_its_end(tmp_path: Path) -> None:
    assert read(tmp_path, f"cpu  1 0 0 0 0 0 0 0 0 0\nintr {'0 ' * 200_000}\nprocesses 77\n").forks == 77


def test_without_a_count_of_processes_there_is_none(tmp_path: Path) -> None:
    assert read(tmp_path, "cpu  1 0 0 0 0 0 0 0 0 0\n").forks is None
