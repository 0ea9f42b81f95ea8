"""A pod's log becomes an event file of the run, a checkpoint, and a file with the rest."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from adapters.katib.pod_lines import EXECUTION, epoch, header, logged, own_end, started, whole_log
from tuneoff.errors import ResultsError
from tuneoff.record.events import schema
from tuneoff.record.events.reader import EventLog
from tuneoff_adapters.kubernetes import layout
from tuneoff_adapters.kubernetes.checkpoint_lines import PART_BYTES, encode
from tuneoff_adapters.kubernetes.followed_pod import PodLog

KATIB_TRIAL = "r5f0c1d2e3f4a-1a2b3c-x7k2m9qp"
TRIAL = "x7k2m9qp"


@pytest.fixture
def log(tmp_path: Path) -> PodLog:
    return PodLog(tmp_path, tmp_path / "framework", EXECUTION, KATIB_TRIAL, TRIAL)


def feed(log: PodLog, lines: Iterable[bytes]) -> list[schema.Event]:
    return [event for text in lines if (event := log.take(text)) is not None]


def stored(tmp_path: Path) -> list[schema.Event]:
    return [event for _, event in EventLog(tmp_path / "events")]


def others(tmp_path: Path) -> list[str]:
    return (tmp_path / "framework" / "pods" / f"{KATIB_TRIAL}.log").read_text().splitlines()


@pytest.mark.parametrize(
    "text",
    [
        b'{"type":"epoch"',
        b'{"type":"nonsense","seq":5,"t":1}',
        epoch(TRIAL, 1, 0.5),
        *logged(epoch(TRIAL, 1, 0.5), execution="5f0c1d2e3f4a-000000"),  # of another execution
        b"\xff\xfe",
        b"{}",
    ],
)
def test_what_the_trial_prints_is_kept_as_text_whatever_it_looks_like(log: PodLog, tmp_path: Path, text: bytes) -> None:
    feed(log, [*logged(header(), started(TRIAL)), text])
    assert len(stored(tmp_path)) == 2
    assert not log.is_broken
    assert (tmp_path / "framework" / "pods" / f"{KATIB_TRIAL}.log").read_bytes() == text + b"\n"


def test_an_image_with_another_version_of_events_is_an_error_and_another_execution_nothing(log: PodLog, tmp_path: Path) -> None:
    assert feed(log, whole_log(TRIAL, [0.5], execution="other")) == []
    assert not (tmp_path / "events").exists()
    with pytest.raises(ResultsError, match="version 99"):
        feed(log, logged(header(version=99)))


def test_a_traceback_is_in_the_run_s_own_log_too(log: PodLog, capsys: pytest.CaptureFixture[str]) -> None:
    traceback = ["Traceback (most recent call last):", '  File "train.py", line 30, in f', "    f()", "", "ValueError: no data"]
    feed(log, [b"before", *(text.encode() for text in traceback), b"after"])
    assert capsys.readouterr().err.splitlines() == traceback


@pytest.mark.parametrize("verdict", [layout.EARLY_STOPPED, layout.FAILED])
def test_what_katib_s_shell_says_is_not_the_trial_s_last_line(log: PodLog, verdict: str) -> None:
    feed(log, [b"Killed"])
    feed(log, [b"\r100%|####" + verdict.encode()])
    assert (log.last_line, log.verdict) == ("100%|####", verdict)
    feed(log, [b"Killed", verdict.encode()])
    assert (log.last_line, log.verdict) == ("Killed", verdict)
    feed(log, [b"and something after it"])
    assert (log.last_line, log.verdict) == ("and something after it", "")


def test_a_checkpoint_arrives_bit_for_bit(log: PodLog, tmp_path: Path) -> None:
    content = bytes(range(256)) * (PART_BYTES // 100)
    feed(log, [*whole_log(TRIAL, [0.5]), *logged(*encode(content))])
    assert log.end() is None
    assert (tmp_path / "checkpoints" / f"{TRIAL}.safetensors").read_bytes() == content
    assert others(tmp_path) == ["hello"]


def test_a_checkpoint_with_a_lost_line_is_told_and_not_kept(log: PodLog, tmp_path: Path) -> None:
    lines = logged(*encode(bytes(2 * PART_BYTES)))
    feed(log, lines[1:])
    assert "must arrive in whole" in (log.end() or "")
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.parametrize("lost", ["a line", "half of one", "its header", "another trial's"])
def test_after_missing_events_none_is_stored(log: PodLog, tmp_path: Path, lost: str) -> None:
    lines = logged(header(), started(TRIAL), epoch(TRIAL, 1, 0.5), epoch(TRIAL, 2, 0.5), own_end(TRIAL, 4))
    if lost == "half of one":
        lines[2] = lines[2][:-30]
    elif lost == "another trial's":
        lines[2:3] = logged(epoch("another", 1, 0.5))
    else:
        del lines[0 if lost == "its header" else 2]
    feed(log, lines)
    assert log.is_broken
    assert len(stored(tmp_path)) == 2 if lost != "its header" else not (tmp_path / "events").exists()


HALVES = [b".", b"\r100%|####|", b"\0\0", b"\xf0\x9f", b'{"type":"epoch","seq":2', b"\x1e", b"\x1b[2K", b"x" * 12_000_000]


@pytest.mark.parametrize("half", HALVES, ids=lambda half: repr(half[:20]))
def test_an_event_is_found_wherever_it_begins_in_a_line(log: PodLog, tmp_path: Path, half: bytes) -> None:
    lines = logged(header(), started(TRIAL), epoch(TRIAL, 1, 0.5), epoch(TRIAL, 2, 0.5), own_end(TRIAL, 4, epochs=2))
    assert len(feed(log, [half + line for line in lines])) == len(stored(tmp_path)) == 5
    assert not log.is_broken
    assert (tmp_path / "framework" / "pods" / f"{KATIB_TRIAL}.log").read_bytes() == 5 * (half + b"\n")


def test_an_event_is_stored_as_it_was_written(log: PodLog, tmp_path: Path) -> None:
    lines = [header(), started(TRIAL, {"x": 0.1, "name": "ü"})]
    feed(log, logged(*lines))
    assert next((tmp_path / "events").iterdir()).read_bytes().splitlines() == lines
