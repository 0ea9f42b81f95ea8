"""The state of a results folder in which another process works: what it is, that it costs little, and that nothing is written."""

from __future__ import annotations

import errno
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders.live_folders import Folder, snapshot
from builders.made_runs import made_run
from tuneoff.base.clock import NANOSECONDS
from tuneoff.base.layout import LOCK
from tuneoff.errors import ResultsError
from tuneoff.judge.groups import grouped
from tuneoff.judge.results import read_results
from tuneoff.record.endings import KILLED, UNWRITABLE
from tuneoff.record.events import reader, tail
from tuneoff.run import run_ends as run_ends_module
from tuneoff.run.run_ends import ELSEWHERE, Holder, holder, run_ends
from tuneoff.tell import record_head
from tuneoff.tell.live import watcher as module
from tuneoff.tell.live.sentences import lines
from tuneoff.tell.live.state import Activity, Current, LiveState, cells_of
from tuneoff.tell.live.watcher import Watcher


def statuses(state: LiveState) -> dict[str, str]:
    return {cell.run_id: cell.status for cell in cells_of(state.rows)}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "results")


def current(state: LiveState) -> Current:
    assert state.current is not None
    return state.current


def test_a_matrix_at_work_shows_its_current_run(folder: Folder) -> None:
    folder.end("serial", 0)
    folder.take()
    running = folder.begin("optuna", 0)
    running.log.step("deploy", 0, None)
    running.log.step("trial", 1, None)
    running.trial("1", value=0.7)
    running.trial("2", "pruned")
    running.trial("3", "failed")
    running.log.coordinator.start("4", 4.0, slot=0)
    running.write()
    state = Watcher(folder.path).look()
    assert (state.activity, state.exit_code, state.pid, state.counts["running"]) == (Activity.WORKING, None, os.getpid(), 1)
    run, live = current(state), current(state).live
    assert (live.step, live.completed, live.pruned, live.failed, live.running, live.incumbent) == ("trial", 1, 1, 1, 1, 0.7)
    assert (run.name, run.position, run.total) == ("optuna random seed 0", 2, 6)
    assert (state.seconds_left or 0) > 4 * 10  # four runs as long as the one that ended, and the rest of this one
    assert live.seconds < 3600  # on this machine's clock


def test_a_run_that_ends_between_two_looks_is_seen_and_the_version_differs(folder: Folder) -> None:
    folder.take()
    running = folder.begin("serial", 0)
    running.write()
    watcher, versions = Watcher(folder.path), set[str]()
    for change, status in ((lambda: None, "running"), (lambda: folder.end("serial", 0, execution="9"), "done")):
        change()
        assert statuses(watcher.look())[running.spec.run_id] == status
        versions.add(watcher.version)
    assert watcher.state().current is None
    folder.begin("optuna", 0).write()
    assert current(watcher.look()).name == "optuna random seed 0"
    assert len({*versions, watcher.version}) == 3


def test_a_line_that_is_not_whole_yet_is_read_when_it_is(folder: Folder) -> None:
    folder.take()
    running = folder.begin("serial", 0)
    running.log.coordinator.start("1", 1.0, slot=0)
    data, watcher = running.lines(), Watcher(folder.path)
    for part, count in ((data[:-20], 0), (data[-20:], 1)):
        running.write(part)
        state = watcher.look()
        assert (current(state).live.running, state.problems) == (count, ())
    running.write(b"no event\n")
    assert "line 3 is not an event" in watcher.look().problems[0]


def test_nothing_is_read_twice(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    decoded: list[int] = []
    read_head, decode_lines = record_head.read_head, reader.decode_lines

    def counted_record(path: Path) -> Any:
        read.append(path)
        return read_head(path)

    def counted_lines(chunk: bytes, *arguments: Any) -> Any:
        decoded.append(len(chunk))
        return decode_lines(chunk, *arguments)

    monkeypatch.setattr(module, "read_head", counted_record)
    monkeypatch.setattr(tail, "decode_lines", counted_lines)
    folder.end("serial", 0)
    folder.take()
    running = folder.begin("optuna", 0)
    running.write()
    watcher = Watcher(folder.path)
    for number in range(5):
        running.trial(str(number))
        watcher.look()
    assert len(read) == 1
    assert sum(decoded) == running.path.stat().st_size


def test_what_an_earlier_command_left_is_not_the_current_run(folder: Folder) -> None:
    left = folder.begin("serial", 0, execution="8")
    left.write()
    os.utime(left.folder / "spec.json", ns=(1, 1))
    folder.take()
    state = Watcher(folder.path).look()
    assert state.current is None
    assert statuses(state)[left.spec.run_id] == "interrupted"
    folder.begin("optuna", 0).write()
    assert Watcher(folder.path).look().counts["running"] == 1


def test_a_run_on_another_host_is_not_said_to_be_dead(folder: Folder) -> None:
    folder.take(pid=2**22 + 1)  # no such process here
    running = folder.begin("serial", 0, host="elsewhere")
    events = running.log.coordinator.events
    events[0] = msgspec.structs.replace(events[0], anchor_wall_ns=time.time_ns() - 30 * NANOSECONDS)
    running.log.step("deploy", 0, None)
    running.write()
    state = Watcher(folder.path).look()
    assert (state.activity, state.host, state.exit_code) == (Activity.ELSEWHERE, "elsewhere", None)
    assert state.current is not None
    assert 30 <= state.current.live.seconds < 90  # by the wall clock: its other clock began at another time
    assert "its state there is unknown here" in "\n".join(lines(state))


def test_a_folder_that_goes_away_is_one_line_and_a_plan_that_was_replaced_is_read_again(folder: Folder) -> None:
    watcher = Watcher(folder.path)
    assert watcher.look().total == 6
    folder.write_plan(runs=folder.plan.runs[:2])
    os.utime(folder.path / "matrix.json", ns=(1, 1))
    assert watcher.look().total == 2
    shutil.rmtree(folder.path)
    with pytest.raises(ResultsError, match=r"is gone: matrix\.json cannot be read"):
        watcher.look()


def test_nothing_is_written_into_the_folder(folder: Folder) -> None:
    folder.end("serial", 0)
    folder.take()
    folder.begin("optuna", 0).trial("1")
    before = snapshot(folder.path)
    watcher = Watcher(folder.path)
    for _ in range(3):
        watcher.look()
    assert snapshot(folder.path) == before
    (folder.path / "planted").touch()
    assert snapshot(folder.path) != before


def test_who_works_there_is_told_by_the_lock_and_without_anybody_by_the_runs(folder: Folder) -> None:
    def activity() -> Activity:
        return Watcher(folder.path).look().activity

    assert activity() is Activity.STOPPED
    folder.take(pid=os.getppid())  # alive, and it has no such file open
    assert activity() is Activity.STOPPED
    folder.end("serial", 0)
    folder.take()
    assert (activity(), Watcher(folder.path).look().current) == (Activity.WORKING, None)  # between two runs
    folder.leave(ended=False)
    assert activity() is Activity.STOPPED
    folder.end_all()
    assert activity() is Activity.FINISHED
    (folder.path / LOCK).write_text("no pid\n")
    assert activity() is Activity.FINISHED


# --- what `status` and `report` say ---


def test_the_statuses_are_those_of_the_results_folder(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "results", ("serial", "optuna", "katib"), seeds=4, skipped="katib")
    folder.end("serial", 0, "interrupted")
    folder.end("serial", 0, execution="2")
    folder.end("serial", 1, "failed", charged="workload")
    folder.end("optuna", 0, "timeout", charged="infrastructure")
    folder.end("optuna", 0, "interrupted", execution="2")
    repeated = made_run(folder.specs["optuna", 1], [], execution="3", environment={"repeat": {"number": 1}})
    folder.end("optuna", 1)
    folder.write(replace(repeated, status="failed", reason="again", charged="workload", started_at="2020"))
    folder.begin("optuna", 2)  # and its command was killed before there was a record
    folder.end("serial", 2, "failed", charged="infrastructure")
    folder.begin("serial", 2)
    found = statuses(Watcher(folder.path).look())
    assert found == {end.run_id: end.status for end in run_ends(folder.path)}
    runs = [run for group in grouped(read_results(folder.path)) for run in group.runs]
    assert found == {run.run_id: run.status for run in runs}
    assert found[folder.specs["optuna", 2].run_id] == "interrupted"
    assert set(found.values()) == {"done", "failed", "interrupted", "skipped", "planned"}


def test_a_run_that_is_repeated_at_the_moment_runs(folder: Folder) -> None:
    folder.end("serial", 0, "interrupted")
    folder.end("serial", 1, "failed", charged="workload")  # final: it is not repeated
    folder.take()
    folder.begin("serial", 0, execution="2").write()
    ends = {end.run_id: (end.status, end.reason) for end in run_ends(folder.path)}
    assert ends[folder.specs["serial", 0].run_id] == ("running", None)
    assert ends[folder.specs["serial", 1].run_id][0] == "failed"
    assert statuses(Watcher(folder.path).look())[folder.specs["serial", 0].run_id] == "running"


def test_a_run_that_ends_while_the_folder_is_looked_at_is_not_killed(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.take()
    folder.begin("serial", 0).write()

    def looked_at_last(results: Path) -> Holder:
        found = holder(results)
        folder.end("serial", 0, execution="9")
        folder.leave(ended=True)
        return found

    monkeypatch.setattr(run_ends_module, "holder", looked_at_last)
    assert run_ends(folder.path)[0].status == "done"


@pytest.mark.parametrize(
    ("lock", "host", "status", "reason"),
    [
        (None, None, "running", None),
        (str(2**22 + 1), None, "interrupted", KILLED.reason),
        (str(2**22 + 1), "elsewhere", "running", ELSEWHERE),
        (f"e{errno.ENOSPC}", None, "interrupted", UNWRITABLE[errno.ENOSPC].reason),
        ("", "elsewhere", "interrupted", KILLED.reason),
    ],
)
def test_a_run_without_a_record_is_told_alike_everywhere(
    folder: Folder, lock: str | None, host: str | None, status: str, reason: str | None
) -> None:
    folder.take()
    begun = folder.begin("serial", 0, host=host)
    begun.write()
    if lock is not None:
        folder.leave(ended=False)
        (folder.path / LOCK).write_text(lock)
    (end,) = (end for end in run_ends(folder.path) if end.run_id == begun.spec.run_id)
    runs = [run for group in grouped(read_results(folder.path)) for run in group.runs]
    (judged,) = (run for run in runs if run.run_id == begun.spec.run_id)
    assert (end.status, end.reason) == (judged.status, judged.reason) == (status, reason)
    (cell,) = (cell for cell in cells_of(Watcher(folder.path).look().rows) if cell.run_id == begun.spec.run_id)
    assert (cell.status, cell.reason) == (status, None if status == "running" else reason)
