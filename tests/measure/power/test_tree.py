"""Which processes are the run's, and what they have used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from builders.waiting_processes import waiting
from fake_proc import FakeProc, FakeProcess
from tuneoff.base import clock
from tuneoff.base.processes import MARK, kill
from tuneoff.measure.power.tree import LITTLE_NS, ProcessTree, TreeLook
from tuneoff.record.events.writer import process_started_ns
from waiting import until

TICK = clock.NANOSECONDS // os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
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


def test_a_process_is_told_as_its_own_event_tells_it(proc: FakeProc) -> None:
    proc.change(
        COORDINATOR, user=7, system=5, children_user=3, children_system=1, started=123457, rss_pages=11, session=COORDINATOR
    )
    usage = next(process for process in tree_of(proc).look(10 * SECOND).processes if process.pid == COORDINATOR)
    assert (usage.parent, usage.cpu_ns, usage.children_cpu_ns) == (SUPERVISOR, 12 * TICK, 4 * TICK)
    assert usage.started_ns == 123457 * TICK
    assert (usage.rss_bytes, usage.pss_bytes, usage.name) == (11 * PAGE, None, "python3")


def test_a_process_that_used_nothing_is_left_out_of_the_next_look(proc: FakeProc) -> None:
    proc.add(FakeProcess(pid=201, parent=COORDINATOR))
    tree = tree_of(proc)
    assert pids(tree.look(10 * SECOND)) == {COORDINATOR, 201}
    proc.change(201, user=1)
    look = tree.look(11 * SECOND)
    assert pids(look) == {201}
    assert look.processes[0].name is None
    assert look.rss_bytes == 20 * PAGE  # of the whole tree, without the supervising process


def test_the_supervising_process_is_listed_with_what_it_waited_for(proc: FakeProc) -> None:
    tree = tree_of(proc)
    assert next(process.pid for process in tree.look(10 * SECOND).processes) == SUPERVISOR
    proc.remove(COORDINATOR)
    proc.change(SUPERVISOR, children_user=9)
    look = tree.look(11 * SECOND)
    assert [(process.pid, process.children_cpu_ns) for process in look.processes] == [(SUPERVISOR, 9 * TICK)]
    assert look.gone == ((COORDINATOR, 100 * TICK),)


def test_a_process_that_is_gone_is_told_once_and_its_pid_may_be_used_again(proc: FakeProc) -> None:
    proc.add(FakeProcess(pid=201, parent=COORDINATOR))
    tree = looked_at(proc)
    proc.remove(201)
    assert tree.look(11 * SECOND).gone == ((201, 100 * TICK),)
    assert tree.look(12 * SECOND).gone == ()
    proc.add(FakeProcess(pid=201, parent=1, started=500, session=201))
    assert pids(tree.look(13 * SECOND)) == set()
    proc.remove(201)
    tree.look(14 * SECOND)
    proc.add(FakeProcess(pid=201, parent=COORDINATOR, started=900))
    assert [process.started_ns for process in tree.look(15 * SECOND).processes] == [900 * TICK]


def test_a_pid_that_was_used_again_between_two_looks_is_another_process(proc: FakeProc, monkeypatch: pytest.MonkeyPatch) -> None:
    proc.add(FakeProcess(pid=201, parent=COORDINATOR))
    tree = looked_at(proc)
    proc.remove(201)
    proc.add(FakeProcess(pid=201, parent=COORDINATOR, started=700))
    look = tree.look(11 * SECOND)
    assert look.gone == ((201, 100 * TICK),)
    assert [process.started_ns for process in look.processes] == [700 * TICK]


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


def test_a_child_that_does_not_run_its_own_program_yet_is_asked_again(proc: FakeProc) -> None:
    proc.add(FakeProcess(pid=301, parent=SUPERVISOR, session=301, started=1000))
    tree = tree_of(proc)
    assert pids(tree.look(1000 * TICK + SECOND)) == {COORDINATOR}
    proc.remove(301)
    proc.add(FakeProcess(pid=301, parent=SUPERVISOR, session=301, started=1000), run=RUN)
    assert pids(tree.look(1000 * TICK + SECOND + 1, proc.forks)) == {301}


def test_a_process_whose_parent_just_ended_is_decided_when_it_is_adopted(proc: FakeProc) -> None:
    tree = looked_at(proc)
    proc.add(FakeProcess(pid=301, parent=299, session=301), run=RUN)
    assert pids(tree.look(11 * SECOND, 7)) == set()
    proc.change(301, parent=SUPERVISOR)
    assert pids(tree.look(12 * SECOND, 7)) == {301}


def test_no_process_is_searched_for_while_the_host_has_made_none(proc: FakeProc) -> None:
    tree = tree_of(proc)
    tree.look(10 * SECOND, 5)
    proc.add(FakeProcess(pid=201, parent=COORDINATOR))
    assert pids(tree.look(11 * SECOND, 5)) == set()
    assert pids(tree.look(12 * SECOND, 6)) == {201}


def test_a_zombie_stays_until_it_is_waited_for(proc: FakeProc) -> None:
    proc.add(FakeProcess(pid=201, parent=COORDINATOR))
    tree = looked_at(proc)
    proc.change(201, state="Z", user=4, rss_pages=0)
    look = tree.look(11 * SECOND)
    assert (look.gone, look.processes[0].cpu_ns) == ((), 4 * TICK)


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


def test_a_look_at_pss_is_paid_off_before_the_next_one(proc: FakeProc, monkeypatch: pytest.MonkeyPatch) -> None:
    cost_ns = SECOND // 50
    readings = iter(range(0, 1000 * cost_ns, cost_ns))
    monkeypatch.setattr("tuneoff.measure.power.tree.time.thread_time_ns", lambda: next(readings))
    proc.add(FakeProcess(pid=201, parent=COORDINATOR, rss_pages=100_000))
    proc.pss(201, 5)
    tree = tree_of(proc)
    looks = [tree.look(second * SECOND, 1) for second in range(10, 40)]
    seen = [second for second, look in enumerate(looks) if any(process.pss_bytes is not None for process in look.processes)]
    assert seen == [0, 10, 20]  # 20 ms each are 0.2 % of 10 s


def test_nothing_is_seen_where_there_is_no_proc(tmp_path: Path) -> None:
    tree = ProcessTree(RUN, 99999, tmp_path / "nowhere")
    assert tree.look(10 * SECOND) == TreeLook((), (), 0)


CHILD = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'input()']).pid, flush=True); input()"


def test_a_real_tree_has_the_identities_of_process_events() -> None:
    with waiting(CHILD, lines=0, env={**os.environ, MARK: "real-run"}, start_new_session=True) as child:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        tree = ProcessTree("real-run")
        look = tree.look(clock.monotonic_ns())
        found = {process.pid: process.started_ns for process in look.processes}
        expected = {pid: process_started_ns(pid) for pid in (os.getpid(), child.pid, grandchild)}
        assert {pid: found.get(pid) for pid in expected} == expected
        kill(grandchild)
        kill(child.pid)
        child.wait()
        until(lambda: {pid for pid, _ in tree.look(clock.monotonic_ns()).gone} >= {child.pid})
