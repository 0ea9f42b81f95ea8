from __future__ import annotations

from pathlib import Path

import pytest

from builders.event_logs import Log, example_b, ns
from tuneoff.errors import ResultsError
from tuneoff.record.events import reader, schema
from tuneoff.record.events.reader import Alignment, EventLog, decode_lines


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return example_b()[0].save(tmp_path / "events")


def test_all_events_of_all_files_come_back(folder: Path) -> None:
    log = EventLog(folder)
    assert sorted(map(repr, log)) == sorted(map(repr, example_b()[0].pairs()))
    assert log.statistics.torn_lines == 0
    assert not log.statistics.gaps


def test_a_torn_last_line_is_counted_and_left_out(folder: Path) -> None:
    path = sorted(folder.iterdir())[-1]
    content = path.read_bytes()
    path.write_bytes(content[:-7])
    log = EventLog(folder)
    assert sum(1 for _ in log) == len(example_b()[0].pairs()) - 1
    assert log.statistics.torn_lines == 1


def test_a_file_that_was_killed_before_its_first_line_is_no_error(folder: Path) -> None:
    (folder / "worker-9-9.jsonl").write_bytes(b"")
    (folder / "worker-8-8.jsonl").write_bytes(b'{"type":"proc')
    log = EventLog(folder)
    assert len(list(log)) == len(example_b()[0].pairs())
    assert log.statistics.torn_lines == 1


@pytest.mark.parametrize(
    ("line", "content", "text"),
    [
        (4, b"\x00\x00rubbish\n", "line 4 is no event"),
        (2, b'{"type":"party","seq":1,"t":2}\n', "line 2 is no event: .*party"),
        (1, None, "version 7 is not readable, this tuneoff reads version 2"),
    ],
    ids=["undecodable", "of an unknown type", "of another schema version"],
)
def test_a_line_that_cannot_be_read_is_an_error_that_names_its_file(
    folder: Path, line: int, content: bytes | None, text: str
) -> None:
    path = sorted(folder.iterdir())[0]
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line - 1] = content or lines[0].replace(b'"version":2', b'"version":7')
    path.write_bytes(b"".join(lines))
    with pytest.raises(ResultsError, match=rf"{path.name}: .*{text}") as error:
        list(EventLog(folder))
    assert "\n" not in str(error.value)


def test_a_missing_line_is_detected(folder: Path) -> None:
    path = sorted(folder.iterdir())[0]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4] + lines[6:]))
    log = EventLog(folder)
    list(log)
    (gap,) = log.statistics.gaps
    assert (gap.file, gap.line, gap.expected, gap.found) == (path.name, 5, 4, 6)


def test_a_missing_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="cannot be read"):
        list(EventLog(tmp_path / "nothing"))


def test_lines_longer_than_a_chunk_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuneoff.record.events.reader.CHUNK_BYTES", 50)
    log, _ = example_b()
    assert len(list(EventLog(log.save(tmp_path)))) == len(log.pairs())


def test_merged_events_are_in_order_of_time(folder: Path) -> None:
    times = [event.t for _, event in EventLog(folder).merged()]
    assert len(times) == len(example_b()[0].pairs())
    # a file's own order stays: the example's coordinator notes exits after other events
    by_file: dict[int, list[int]] = {}
    for process, event in EventLog(folder).merged():
        by_file.setdefault(process.pid, []).append(event.seq)
    assert all(seqs == sorted(seqs) for seqs in by_file.values())


def test_merging_aligns_a_host_whose_monotonic_clock_differs(tmp_path: Path) -> None:
    log = Log()
    log.coordinator.add(schema.Flag, 1, name="first", text="")
    log.coordinator.add(schema.Flag, 3, name="third", text="")
    other = log.process("trial", 0.5, host="other", boot="boot-2", clock_shift=-900)
    other.add(schema.Flag, 2, name="second", text="")
    merged = [event.name for _, event in EventLog(log.save(tmp_path)).merged() if isinstance(event, schema.Flag)]
    assert merged == ["first", "second", "third"]


def test_an_alignment_states_its_uncertainty_and_widens_by_what_events_prove() -> None:
    log = Log()
    other = log.process("trial", 0, host="other", boot="boot-2")
    alignment = Alignment([log.coordinator.process, other.process])
    assert alignment.uncertainty_ns == 400
    alignment.widen(log.coordinator.process, ns(1))
    assert alignment.uncertainty_ns == 400
    alignment.widen(other.process, ns(0.5))
    assert alignment.uncertainty_ns == ns(0.5)


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LONGEST_LINE", 3_000_000)
    with (tmp_path / "x.jsonl").open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(ResultsError, match="cannot be read: a line has more than 3000000 bytes"):
        list(EventLog(tmp_path))


def test_a_line_that_is_nested_too_deeply_is_named() -> None:
    deep = b'{"type": "' + b"flag" + b'", "unknown": ' + b"[" * 100_000 + b"\n"
    with pytest.raises(ResultsError, match="x: line 3 is no event"):
        decode_lines(deep, "x", 3)
