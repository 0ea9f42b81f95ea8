"""A pod's log becomes an event file of the run, a checkpoint, and a file with the rest."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from adapters.katib.pod_lines import EXECUTION, epoch, header, line, started, whole_log
from tuneoff.errors import ResultsError
from tuneoff.record.events import schema
from tuneoff.record.events.reader import EventLog
from tuneoff_adapters.kubernetes import layout
from tuneoff_adapters.kubernetes.checkpoint_lines import PART_BYTES, encode
from tuneoff_adapters.kubernetes.pod_log import PodLog

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


def test_events_become_an_event_file_that_core_reads(log: PodLog, tmp_path: Path) -> None:
    events = feed(log, whole_log(TRIAL, [0.5, 0.25]))
    assert stored(tmp_path) == events
    assert [type(event).__name__ for event in events] == ["Process", "TrialStarted", "Epoch", "Epoch", "TrialEnded"]
    assert others(tmp_path) == ["hello"]
    assert log.process is not None


def test_an_event_is_stored_as_it_was_written(log: PodLog, tmp_path: Path) -> None:
    lines = [header(), started(TRIAL, {"x": 0.1, "name": "ü"})]
    feed(log, lines)
    assert next((tmp_path / "events").iterdir()).read_bytes().splitlines() == lines


@pytest.mark.parametrize(
    "text",
    [
        b'{"type":"epoch"',
        b'{"type":"nonsense","seq":5,"t":1}',
        b'{"type": "epoch"}',
        epoch("another", 1, 0.5),
        b"\xff\xfe",
        b"{}",
    ],
)
def test_what_is_no_event_of_this_trial_is_kept_as_text(log: PodLog, tmp_path: Path, text: bytes) -> None:
    feed(log, [header(), started(TRIAL), text])
    assert len(stored(tmp_path)) == 2
    assert (tmp_path / "framework" / "pods" / f"{KATIB_TRIAL}.log").read_bytes() == text + b"\n"


def test_events_of_another_execution_are_not_taken(log: PodLog, tmp_path: Path) -> None:
    assert feed(log, whole_log(TRIAL, [0.5], execution="other")) == []
    assert not (tmp_path / "events").exists()


def test_an_image_with_another_version_of_events_is_an_error(log: PodLog) -> None:
    with pytest.raises(ResultsError, match="version 99"):
        feed(log, [header(version=99)])


def test_the_last_line_of_text_is_remembered(log: PodLog) -> None:
    feed(log, [b"Traceback", b"ModuleNotFoundError: x", b"  "])
    assert log.last_line == "ModuleNotFoundError: x"


def test_a_traceback_is_in_the_run_s_own_log_too(log: PodLog, capsys: pytest.CaptureFixture[str]) -> None:
    traceback = ["Traceback (most recent call last):", '  File "train.py", line 30, in f', "    f()", "", "ValueError: no data"]
    feed(log, [b"before", *(text.encode() for text in traceback), b"after"])
    assert capsys.readouterr().err.splitlines() == traceback


@pytest.mark.parametrize("verdict", [layout.EARLY_STOPPED, layout.FAILED])
def test_what_katib_s_shell_says_is_not_the_trial_s_last_line(log: PodLog, verdict: str) -> None:
    feed(log, [b"Killed", verdict.encode()])
    assert (log.last_line, log.verdict) == ("Killed", verdict)
    feed(log, [b"and something after it"])
    assert (log.last_line, log.verdict) == ("and something after it", "")


def test_a_checkpoint_arrives_bit_for_bit(log: PodLog, tmp_path: Path) -> None:
    content = bytes(range(256)) * (PART_BYTES // 100)
    feed(log, [*whole_log(TRIAL, [0.5]), *(text.rstrip(b"\n") for text in encode(content))])
    assert log.end() is None
    assert (tmp_path / "checkpoints" / f"{TRIAL}.safetensors").read_bytes() == content
    assert others(tmp_path) == ["hello"]


def test_a_checkpoint_with_a_lost_line_is_told_and_not_kept(log: PodLog, tmp_path: Path) -> None:
    lines = [text.rstrip(b"\n") for text in encode(bytes(2 * PART_BYTES))]
    feed(log, lines[1:])
    assert "must arrive in whole" in (log.end() or "")
    assert not (tmp_path / "checkpoints").exists()


def test_a_log_without_anything_makes_no_file(log: PodLog, tmp_path: Path) -> None:
    assert log.end() is None
    assert list(tmp_path.iterdir()) == []


def test_lines_between_are_missed_by_their_numbers(log: PodLog, tmp_path: Path) -> None:
    feed(log, [header(), started(TRIAL), epoch(TRIAL, 2, 0.5, seq=3)])
    reader = EventLog(tmp_path / "events")
    assert len(list(reader)) == 3
    assert len(reader.statistics.gaps) == 1


def test_a_flag_of_the_pod_is_an_event_too(log: PodLog) -> None:
    events = feed(log, [header(), line("flag", 1, name="n", text="t")])
    assert isinstance(events[1], schema.Flag)
