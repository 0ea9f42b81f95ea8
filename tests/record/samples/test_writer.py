"""Writing samples: whole lines, whatever the disk does."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from builders.worked_examples import header
from tuneoff.base.layout import SAMPLES
from tuneoff.record.samples.reader import power_of, read_samples
from tuneoff.record.samples.schema import MOST_NOTES, Header, PowerSample, SampleWriter


def rapl(**fields: object) -> Header:
    return header("rapl", "measured", **{"source": "powercap", "cpus": 1, **fields})


def sample(t: int) -> PowerSample:
    return PowerSample(t=t, domain="package-0", joules=float(t))


class FullDisk:
    """Stands in for `os.write`: takes `parts` of the next lines (bytes, or an error), then everything."""

    def __init__(self, *parts: int | OSError) -> None:
        self._parts, self._write = list(parts), os.write

    def __call__(self, descriptor: int, text: bytes) -> int:
        part = self._parts.pop(0) if self._parts else len(text)
        if isinstance(part, OSError):
            raise part
        return self._write(descriptor, text[:part])


def test_what_is_written_is_read(tmp_path: Path) -> None:
    writer = SampleWriter(tmp_path, rapl(reason="because"))
    writer.write(sample(1))
    writer.note("a\nnote")
    writer.note("a note")
    writer.close()
    writer.close()
    writer.write(sample(2))
    samples = read_samples(tmp_path)
    assert samples is not None
    assert (samples.power_samples, samples.notes, samples.torn_lines) == (1, ("a note",), 0)
    assert writer.written_bytes == (tmp_path / SAMPLES).stat().st_size
    assert power_of(tmp_path) == {
        "meter": "rapl",
        "kind": "measured",
        "source": "powercap",
        "reason": "because",
        "detail": "",
        "idle_problem": "",
    }


def test_lines_that_a_full_disk_does_not_take_are_counted_and_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = SampleWriter(tmp_path, rapl())
    monkeypatch.setattr("tuneoff.base.files.os.write", FullDisk(OSError(errno.ENOSPC, "No space left on device"), 10))
    for t in (1, 2, 3):
        writer.write(sample(t))
    writer.close()
    samples = read_samples(tmp_path)
    assert samples is not None
    assert samples.power_samples == 1
    assert samples.notes == ("2 samples could not be written: the disk is full: it took only a part of a line",)


def test_a_header_that_cannot_be_written_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuneoff.base.files.os.write", FullDisk(10))
    with pytest.raises(OSError, match="full"):
        SampleWriter(tmp_path, rapl())
    assert list(tmp_path.iterdir()) == []


def test_notes_that_are_new_each_time_do_not_fill_the_file(tmp_path: Path) -> None:
    writer = SampleWriter(tmp_path, rapl())
    for number in range(10 * MOST_NOTES):
        writer.note(f"failed after {number} s")
    writer.close()
    samples = read_samples(tmp_path)
    assert samples is not None
    assert len(samples.notes) == MOST_NOTES


def test_a_write_that_hangs_does_not_keep_the_file_s_end_from_coming(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = SampleWriter(tmp_path, rapl())
    entered, released = threading.Event(), threading.Event()

    def hang(descriptor: int, text: bytes) -> int:
        entered.set()
        released.wait()
        return len(text)

    monkeypatch.setattr("tuneoff.base.files.os.write", hang)
    thread = threading.Thread(target=writer.write, args=(sample(1),))
    thread.start()
    assert entered.wait(10)
    writer.close(within_seconds=0.01)
    released.set()
    thread.join()
    monkeypatch.undo()
    writer.close()


@pytest.mark.parametrize("content", [b"", b'{"type":"head'])
def test_a_file_that_a_kill_left_without_a_whole_line_holds_no_samples(tmp_path: Path, content: bytes) -> None:
    (tmp_path / SAMPLES).write_bytes(content)
    assert read_samples(tmp_path) is None
    assert power_of(tmp_path) is None
