"""The process tree of a run, and what the kernel tells of processes."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

import pytest

from fake_proc import FakeProc, FakeProcess
from tuneoff.base import clock
from tuneoff.base.processes import pss_bytes
from tuneoff.measure.power.procfs import HostClock, HostTimes, carries, parse_stat, read_stat
from tuneoff.measure.power.tree import LITTLE_NS, ProcessTree, TreeLook

TICK = clock.NANOSECONDS // os.sysconf("SC_CLK_TCK")
SECOND = clock.NANOSECONDS
RUN, SUPERVISOR, COORDINATOR = "run-1", 100, 200


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    proc = FakeProc(tmp_path / "proc")
    proc.add(FakeProcess(pid=SUPERVISOR, parent=1, session=SUPERVISOR, name="tuneoff"))
    proc.add(FakeProcess(pid=COORDINATOR, parent=SUPERVISOR, session=COORDINATOR), run=RUN)
    return proc


def tree_of(proc: FakeProc) -> ProcessTree:
    return ProcessTree(RUN, SUPERVISOR, proc.root, cpu_clock=lambda pid: None)


def looked_at(proc: FakeProc) -> ProcessTree:
    """Return a tree after its first look, at 10 s."""
    tree = tree_of(proc)
    tree.look(10 * SECOND)
    return tree


def pids(look: TreeLook) -> set[int]:
    return {process.pid for process in look.processes} - {SUPERVISOR}


def test_descendants_of_the_coordinator_are_found_and_others_are_not(proc: FakeProc) -> None:
    proc.add(FakeProcess(pid=150, parent=SUPERVISOR, session=150, name="guardian"))
    proc.add(FakeProcess(pid=201, parent=COORDINATOR))
    proc.add(FakeProcess(pid=180, parent=201, name="a (b) c"))  # a lower pid than its parent: pids wrap
    proc.add(FakeProcess(pid=300, parent=1, session=300, name="somebody else's"))
    look = tree_of(proc).look(10 * SECOND)
    assert pids(look) == {COORDINATOR, 201, 180}
    assert {process.name for process in look.processes if process.pid == 180} == {"a (b) c"}


def test_a_process_that_is_gone_is_told_once_and_its_pid_may_be_used_again(proc: FakeProc) -> None:
    proc.add(FakeProcess(pid=201, parent=COORDINATOR))
    tree = looked_at(proc)
    proc.remove(201)
    assert tree.look(11 * SECOND).gone == ((201, 100 * TICK),)
    assert tree.look(12 * SECOND).gone == ()
    proc.add(FakeProcess(pid=201, parent=1, started=500, session=201))
    assert pids(tree.look(13 * SECOND)) == set()
    for started in (700, 900):  # the second between two looks
        proc.remove(201)
        if started == 700:
            tree.look(14 * SECOND)
        proc.add(FakeProcess(pid=201, parent=COORDINATOR, started=started))
        assert [process.started_ns for process in tree.look((15 + started) * SECOND).processes] == [started * TICK]


def test_an_adopted_process_that_was_seen_before_stays(proc: FakeProc) -> None:
    proc.add(FakeProcess(pid=201, parent=COORDINATOR))
    tree = looked_at(proc)
    proc.change(201, parent=1, user=3)
    assert pids(tree.look(11 * SECOND)) == {201}


@pytest.mark.parametrize("adopter", [SUPERVISOR, 1])
def test_an_orphan_is_known_by_its_mark(proc: FakeProc, adopter: int) -> None:
    tree = looked_at(proc)
    proc.add(FakeProcess(pid=301, parent=adopter, session=301), run=RUN)
    proc.add(FakeProcess(pid=302, parent=adopter, session=302), run="another-run")
    proc.add(FakeProcess(pid=303, parent=adopter, session=303))
    proc.add(FakeProcess(pid=304, parent=303, session=303))
    assert pids(tree.look(11 * SECOND)) == {301}


def test_an_orphan_without_a_mark_is_known_by_its_session(proc: FakeProc) -> None:
    tree = looked_at(proc)
    proc.add(FakeProcess(pid=301, parent=SUPERVISOR, session=COORDINATOR))
    proc.add(FakeProcess(pid=302, parent=SUPERVISOR, session=SUPERVISOR))
    assert pids(tree.look(11 * SECOND)) == {301}


def test_a_process_whose_parent_just_ended_is_decided_when_it_is_adopted(proc: FakeProc) -> None:
    tree = looked_at(proc)
    proc.add(FakeProcess(pid=301, parent=299, session=301), run=RUN)
    assert pids(tree.look(11 * SECOND, 7)) == set()
    proc.change(301, parent=SUPERVISOR)
    assert pids(tree.look(12 * SECOND, 7)) == {301}


def test_a_process_that_used_little_is_read_again_after_a_second_or_when_it_has_waited_for_a_child(proc: FakeProc) -> None:
    clocks: dict[int, int] = {SUPERVISOR: 0, COORDINATOR: 10 * TICK, 201: 10 * TICK}
    proc.add(FakeProcess(pid=201, parent=COORDINATOR))
    tree = ProcessTree(RUN, SUPERVISOR, proc.root, cpu_clock=clocks.get)
    assert {process.pid: process.cpu_ns for process in tree.look(10 * SECOND).processes} == clocks
    clocks[201] += LITTLE_NS - 1
    clocks[COORDINATOR] += LITTLE_NS
    look = tree.look(10 * SECOND + 200_000_000, 1)
    assert [(process.pid, process.cpu_ns) for process in look.processes] == [(COORDINATOR, clocks[COORDINATOR])]
    look = tree.look(11 * SECOND, 1)
    assert [(process.pid, process.cpu_ns) for process in look.processes] == [(201, clocks[201])]
    proc.remove(201)
    del clocks[201]
    proc.change(COORDINATOR, children_user=30)
    look = tree.look(11 * SECOND + 100_000_000, 1)
    assert look.gone == ((201, 100 * TICK),)
    assert [(process.pid, process.children_cpu_ns) for process in look.processes] == [(COORDINATOR, 30 * TICK)]


def test_what_was_once_seen_of_a_process_never_falls(proc: FakeProc) -> None:
    clocks: dict[int, int] = {COORDINATOR: 57_000_001}
    tree = ProcessTree(RUN, SUPERVISOR, proc.root, cpu_clock=clocks.get)
    tree.look(10 * SECOND)
    clocks.clear()  # a zombie has no clock, and its stat file tells whole ticks
    proc.change(COORDINATOR, state="Z", user=5, children_user=1)
    assert [process.cpu_ns for process in tree.look(12 * SECOND).processes] == [57_000_001]


def test_pss_is_looked_at_of_large_processes_one_at_a_time_and_rarely(proc: FakeProc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuneoff.measure.power.tree.MOST_SHARE", 1e9)  # a look costs nothing here
    proc.add(FakeProcess(pid=201, parent=COORDINATOR, rss_pages=100_000))
    proc.add(FakeProcess(pid=202, parent=COORDINATOR, rss_pages=100_000))
    proc.pss(201, 5)
    proc.pss(202, 6)
    proc.pss(COORDINATOR, 7)
    tree = tree_of(proc)
    seen: list[tuple[int, int | None]] = []
    for tenth in range(100, 200):
        look = tree.look(tenth * SECOND // 10, 1)
        seen += [(process.pid, process.pss_bytes) for process in look.processes if process.pss_bytes is not None]
    assert seen == [(201, 5 * 1024), (202, 6 * 1024), (201, 5 * 1024), (202, 6 * 1024)]


def test_nothing_is_seen_where_there_is_no_proc(tmp_path: Path) -> None:
    tree = ProcessTree(RUN, 99999, tmp_path / "nowhere")
    assert tree.look(10 * SECOND) == TreeLook((), (), 0)


def test_a_name_with_blanks_and_brackets_does_not_shift_the_fields() -> None:
    line = b"7 (a) (b c) S 3 1 9 0 -1 0 0 0 0 0 11 12 13 14 20 0 1 0 500 0 2 0 0\n"
    stat = parse_stat(line)
    assert stat is not None
    assert (stat.name, stat.parent, stat.session, stat.started_ns) == ("a) (b c", 3, 9, 500 * TICK)
    assert (stat.cpu_ns, stat.children_cpu_ns) == (23 * TICK, 27 * TICK)
    assert parse_stat(b"") is parse_stat(b"7 (cut off) S 3") is None


def test_a_mark_is_a_whole_line_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "environ").write_bytes(b"RUN=abc\0X=RUN=ab\0")
    assert carries(7, b"RUN=abc", str(tmp_path))
    assert not carries(7, b"RUN=ab", str(tmp_path))
    assert (carries(8, b"A=b", str(tmp_path)), read_stat(8, str(tmp_path)), pss_bytes(8, str(tmp_path))) == (False, None, None)


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


def test_a_long_stat_file_is_read_to_its_end(tmp_path: Path) -> None:
    assert read(tmp_path, f"cpu  1 0 0 0 0 0 0 0 0 0\nintr {'0 ' * 200_000}\nprocesses 77\n").forks == 77
