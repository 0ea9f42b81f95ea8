"""The event writer: one line per event, every type readable, a full disk leaves no half line."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tuneoff.base import clock
from tuneoff.base.layout import CLOCKS
from tuneoff.errors import ResultsError
from tuneoff.record.events import schema
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.writer import EventWriter


def test_a_trial_whose_name_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    writer = EventWriter(tmp_path, "e", "worker")
    for name in ("t00000", "../t00000"):
        writer.write("refused", trial=name, reason="trials")
    with pytest.raises(ResultsError, match=r"line 3 is not an event: .*must match"):
        list(EventLog(tmp_path / "events"))


@pytest.mark.parametrize("text", ["file \udcff", "\ud800", "\ud83d alone, then \U0001f600", "'\"\\\udc80\n"], ids=ascii)
def test_a_lone_surrogate_in_a_text_costs_no_event(tmp_path: Path, text: str) -> None:
    writer = EventWriter(tmp_path, "e", "worker")
    writer.write("trial_ended", trial="t", state="failed", epochs=0, cause=text)
    (ended,) = [event for _, event in EventLog(tmp_path / "events") if isinstance(event, schema.TrialEnded)]
    assert ended.cause == "".join(f"&#{ord(letter)};" if 0xD800 <= ord(letter) < 0xE000 else letter for letter in text)


@pytest.fixture
def _small_files() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("_small_files")
def test_a_line_that_the_disk_takes_only_in_part_is_taken_back(tmp_path: Path) -> None:
    writer = EventWriter(tmp_path, "e", "worker")
    writer.flag("first", "whole")
    assert writer.path is not None
    size = os.path.getsize(writer.path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, hard))
    with pytest.raises(OSError, match="disk is full"):
        writer.flag("second", "cut after ten bytes")
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    writer.flag("third", "whole again")
    events = [event for _, event in EventLog(tmp_path / "events")]
    assert [event.name for event in events if isinstance(event, schema.Flag)] == ["first", "third"]
    assert [event.seq for event in events] == [0, 1, 2]


def test_a_host_whose_clock_was_measured_is_dated_by_that_and_not_by_its_own_wall_clock(tmp_path: Path) -> None:
    (tmp_path / CLOCKS).mkdir()
    (tmp_path / CLOCKS / clock.boot_id()).write_text("5000000000 7000")
    EventWriter(tmp_path, "e", "worker").close()
    ((process, _),) = EventLog(tmp_path / "events")
    assert (process.anchor_wall_ns - process.anchor_monotonic_ns, process.anchor_width_ns) == (5_000_000_000, 7000)
