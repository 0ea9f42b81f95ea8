from __future__ import annotations

from pathlib import Path

import pytest

from builders.event_logs import Log, example_b
from tuneoff.errors import ResultsError
from tuneoff.record.events import reader, schema
from tuneoff.record.events.reader import EventLog, decode_lines


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return example_b()[0].save(tmp_path / "events")


@pytest.mark.parametrize(
    ("line", "content", "text"),
    [
        (4, b"\x00\x00rubbish\n", "line 4 is not an event"),
        (2, b'{"type":"party","seq":1,"t":2}\n', "line 2 is not an event: .*party"),
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
    assert (gap.file, gap.line, gap.expected, gap.actual) == (path.name, 5, 4, 6)


def test_a_missing_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="cannot be read"):
        list(EventLog(tmp_path / "nothing"))


def test_merging_aligns_a_host_whose_monotonic_clock_differs(tmp_path: Path) -> None:
    log = Log()
    log.coordinator.add(schema.Flag, 1, name="first", text="")
    log.coordinator.add(schema.Flag, 3, name="third", text="")
    other = log.process("trial", 0.5, host="other", boot="boot-2", clock_shift=-900)
    other.add(schema.Flag, 2, name="second", text="")
    merged = [event.name for _, event in EventLog(log.save(tmp_path)).merged() if isinstance(event, schema.Flag)]
    assert merged == ["first", "second", "third"]


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LONGEST_LINE", 3_000_000)
    with (tmp_path / "x.jsonl").open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(ResultsError, match="cannot be read: a line has more than 3000000 bytes"):
        list(EventLog(tmp_path))


def test_a_line_that_is_nested_too_deeply_is_named() -> None:
    deep = b'{"type": "' + b"flag" + b'", "unknown": ' + b"[" * 100_000 + b"\n"
    with pytest.raises(ResultsError, match="x: line 3 is not an event"):
        decode_lines(deep, "x", 3)
