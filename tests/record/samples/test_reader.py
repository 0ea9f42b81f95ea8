"""Reading samples: in which memory, and what is refused."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import msgspec
import pytest

from record.samples.test_writer import rapl
from tuneoff.base.layout import SAMPLES
from tuneoff.errors import ResultsError
from tuneoff.record.samples import reader
from tuneoff.record.samples.reader import read_samples
from tuneoff.record.samples.schema import PowerSample

ROWS = 20_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with many samples of one counter."""
    lines = [rapl(), *(PowerSample(t=200_000_000 * row + 1, domain="package-0", joules=1.5 * row) for row in range(ROWS))]
    (tmp_path / SAMPLES).write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return tmp_path


def test_a_last_line_that_is_not_whole_is_counted_and_left_out(folder: Path) -> None:
    path = folder / SAMPLES
    os.truncate(path, path.stat().st_size - 3)
    found = read_samples(folder)
    assert found is not None
    assert (found.power_samples, found.torn_lines) == (ROWS - 1, 1)
    os.truncate(path, 5)
    assert read_samples(folder) is None


def test_a_line_that_is_no_sample_is_named(folder: Path) -> None:
    path = folder / SAMPLES
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:6], b'{"type":"power"}\n', *lines[6:]]))
    with pytest.raises(ResultsError, match=r"line 7 is not a sample"):
        read_samples(folder)


def test_a_file_that_is_too_large_is_refused_in_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = (folder / SAMPLES).stat().st_size
    monkeypatch.setattr(reader, "MOST_BYTES", size)
    assert read_samples(folder) is not None
    monkeypatch.setattr(reader, "MOST_BYTES", size - 1)
    with pytest.raises(ResultsError, match=f"too large: it must have at most {size - 1} bytes; remove it") as raised:
        read_samples(folder)
    assert "\n" not in str(raised.value)


def test_a_file_of_one_endless_line_is_refused_before_it_is_in_memory(tmp_path: Path) -> None:
    path = tmp_path / SAMPLES
    path.touch()
    os.truncate(path, 4 * reader.MOST_LINE_BYTES)  # a hole: it takes no room on the disk
    tracemalloc.start()
    with pytest.raises(ResultsError, match="a line of it must have at most"):
        read_samples(tmp_path)
    assert tracemalloc.get_traced_memory()[1] < 3 * reader.MOST_LINE_BYTES
    tracemalloc.stop()


def test_what_files_of_earlier_commits_say_of_whole_nodes_is_read_over(folder: Path) -> None:
    plain = read_samples(folder)
    with (folder / SAMPLES).open("a") as file:
        file.write('{"type":"node","t":5,"node":"a","cpu_seconds":1.5}\n{"type":"node","t":5,"node":"a","memory_bytes":7}\n')
    assert read_samples(folder) == plain
