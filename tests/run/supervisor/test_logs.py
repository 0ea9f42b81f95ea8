"""A log keeps its first and its last part, while it grows and afterwards, and disturbs nobody who writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tuneoff.run.supervisor import logs
from tuneoff.run.supervisor.logs import HEAD_BYTES, TAIL_BYTES, Logs, shorten

LINE = b"%09d " + 89 * b"x" + b"\n"  # 100 bytes


def lines(start: int, count: int) -> bytes:
    return b"".join(LINE % number for number in range(start, start + count))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "framework" / "tuner" / "0").mkdir(parents=True)
    return tmp_path


def test_a_log_that_grows_holds_little_of_the_disk_and_has_its_ends_afterwards(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "LOOK_SECONDS", 0.0)
    path, watched = folder / "log.txt", Logs(folder, folder / "none", ())
    with path.open("ab", buffering=0) as writer:  # as a process of the run has it
        for part in range(6):
            writer.write(lines(part * 60_000, 60_000))
            watched.look()
            most = path.stat().st_blocks * 512
        assert path.stat().st_size == 36_000_000, "its writers notice nothing"
        if path.stat().st_blocks * 512 == 36_000_000:
            pytest.skip("this file system cannot free a part of a file")
        assert most <= 2 * (HEAD_BYTES + TAIL_BYTES) + 6_000_000
        writer.write(b"the last words\n")
        text = watched.shorten() or ""
        assert "log.txt: 31.0 MB were left out, the first 1 MB and the last 4 MB were kept" in text
        writer.write(b"what comes later\n")
    content = path.read_bytes()
    assert len(content) < HEAD_BYTES + TAIL_BYTES + 1000
    assert b"\0" not in content
    numbers = [int(line[:9]) for line in content.splitlines() if len(line) == 99]
    assert numbers[:2] == [0, 1]
    assert numbers[-1] == 359_999
    (note,) = [line for line in content.splitlines() if line.startswith(b"[tuneoff left out ")]
    assert int(note.split()[3]) == 36_000_015 - (len(content) - len(note) - 1 - len("what comes later\n"))
    assert content.endswith(b"the last words\nwhat comes later\n")
    assert watched.shorten() is None, "once is enough"


def test_the_adapter_s_logs_have_the_same_bound_and_are_counted(folder: Path) -> None:
    temporary = folder / "temporary"
    temporary.mkdir()
    large = [folder / "framework" / "tuner" / "0" / "std.err", folder / "log.txt", temporary / "worker-1"]
    for path in large:
        path.write_bytes(lines(0, 130_000))
    (folder / "framework" / "tuner" / "0" / "std.out").write_bytes(lines(0, 130_000))
    (folder / "small.txt").write_bytes(lines(0, 10))
    watched = Logs(folder, temporary, ("tuner/*/std.err", "worker-*"))
    watched.look()
    assert {path.stat().st_size for path in large} == {13_000_000}
    assert "log.txt and 1 more: 16.0 MB were left out" in (watched.shorten() or "")
    assert [path.stat().st_size < 5_001_000 for path in large] == [True, True, False], "the temporary folder is removed"
    assert (folder / "framework" / "tuner" / "0" / "std.out").stat().st_size == 13_000_000


@pytest.mark.parametrize("plant", ["link", "second name", "pipe", "folder"])
def test_what_stands_in_the_place_of_a_log_stays(folder: Path, plant: str) -> None:
    mine, path = folder / "mine", folder / "log.txt"
    mine.write_bytes(lines(0, 130_000))
    if plant == "pipe":
        os.mkfifo(path)
    elif plant == "folder":
        path.mkdir()
    else:
        (os.symlink if plant == "link" else os.link)(mine, path)
    watched = Logs(folder, folder, ())
    watched.look()
    assert (watched.shorten(), shorten(path)) == (None, 0)
    assert mine.read_bytes() == lines(0, 130_000)
