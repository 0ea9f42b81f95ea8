from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from builders.event_logs import Log, example_b
from tuneoff.record.events import schema
from tuneoff.record.events.tail import QUIET_POLLS, Tail
from tuneoff.record.events.writer import EventWriter


def test_polls_together_return_every_event_once(tmp_path: Path) -> None:
    tail = Tail(tmp_path / "events")
    assert tail.poll() == []
    writer = EventWriter(tmp_path, "run-x", "worker")
    writer.flag("one", "")
    assert [type(event) for _, event in tail.poll()] == [schema.Process, schema.Flag]
    assert tail.poll() == []
    writer.flag("two", "")
    other = EventWriter(tmp_path, "run-x", "coordinator")
    names = [(process.role, event.name) for process, event in tail.poll() if isinstance(event, schema.Flag)]
    assert names == [("worker", "two")]
    other.flag("three", "")
    assert [process.role for process, _ in tail.poll()] == ["coordinator"]
    writer.close()
    other.close()


def test_a_line_is_returned_only_when_it_is_whole(tmp_path: Path) -> None:
    content = next(iter(_files(tmp_path / "source")))
    path = tmp_path / "events" / "worker-1-1.jsonl"
    path.parent.mkdir()
    tail, found = Tail(path.parent), 0
    for index in range(0, len(content), 37):
        with path.open("ab") as file:
            file.write(content[index : index + 37])
        found += len(tail.poll())
        assert found == content[: index + 37].count(b"\n")
    assert not tail.problems


def test_a_bad_line_is_skipped_and_named(tmp_path: Path) -> None:
    writer = EventWriter(tmp_path, "run-x", "worker")
    assert writer.path is not None
    with writer.path.open("ab") as file:
        file.write(b"rubbish\n")
    writer.flag("after", "")
    writer.close()
    tail = Tail(tmp_path / "events")
    assert [type(event) for _, event in tail.poll()] == [schema.Process, schema.Flag]
    assert len(tail.problems) == 1
    assert "line 2" in tail.problems[0]


def test_a_file_of_another_schema_version_is_left_alone_and_named(tmp_path: Path) -> None:
    (tmp_path / "worker-1-1.jsonl").write_bytes(b'{"type":"process","version":9}\n')
    tail = Tail(tmp_path)
    assert tail.poll() == []
    assert tail.poll() == []
    assert len(tail.problems) == 1


def test_a_file_is_followed_though_the_folder_s_coarse_time_does_not_show_it(tmp_path: Path) -> None:
    log, tail, later = Log(), Tail(tmp_path), time.time_ns() + 10**13  # no scan is so late that the time is settled
    for role in ("worker", "trial"):
        log.process(role, 1)
        log.save(tmp_path)
        os.utime(tmp_path, ns=(later, later))
        assert tail.poll()


def test_files_of_ended_processes_are_not_looked_at_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    log.process("trial", 1, pid=_ended_pid())
    log.process("trial", 1, pid=os.getpid())
    monkeypatch.setattr("tuneoff.record.events.tail.boot_id", lambda: log.coordinator.process.boot_id)
    log.writers.remove(log.coordinator)
    tail = Tail(log.save(tmp_path))
    assert len(tail.poll()) == 2
    for _ in range(QUIET_POLLS + 2):
        assert tail.poll() == []
    assert [followed.process.pid for followed in tail._active.values() if followed.process] == [os.getpid()]


def test_the_file_of_a_pod_is_looked_at_until_its_trial_ends_however_long_its_log_is_away(tmp_path: Path) -> None:
    writer = EventWriter(tmp_path, "run-x", "pod")  # this process writes it, as an adapter does for a pod
    assert writer.path is not None
    writer.path.write_bytes(writer.path.read_bytes().replace(b'"pid":%d' % os.getpid(), b'"pid":%d' % _ended_pid()))
    tail = Tail(tmp_path / "events")
    assert len(tail.poll()) == 1
    for _ in range(QUIET_POLLS + 2):
        assert tail.poll() == []
    writer.write("trial_ended", trial="t00000", state="completed", epochs=1)
    assert [type(event) for _, event in tail.poll()] == [schema.TrialEnded]
    for _ in range(QUIET_POLLS + 2):
        assert tail.poll() == []
    assert tail._active == {}
    writer.close()


def _ended_pid() -> int:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def _files(folder: Path) -> list[bytes]:
    example_b()[0].save(folder)
    return [path.read_bytes() for path in sorted(folder.iterdir())]
