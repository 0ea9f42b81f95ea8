"""The check of slots against processes seen from outside: that it finds a planted fault, and what a real run says."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from builders.event_logs import example_c
from builders.stored import write_run
from e2e.slot_presence import TICK_NS, Watcher, booked, differing, on_one_slot, one_run, read_events, recorded
from tuneoff.measure.derived import derive_folder

CHILD = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import sys; sys.stdin.read()', *sys.argv[1:]])"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return an execution's folder with worked example C."""
    log, spec = example_c()
    log.save(tmp_path / "events")
    write_run(tmp_path, derive_folder(tmp_path, spec).record)
    return tmp_path


def test_the_record_of_worked_example_c_agrees_with_its_events_and_a_booking_on_one_slot_does_not(folder: Path) -> None:
    record, raw = recorded(folder), read_events(folder)
    assert (record.overhead, record.idle, record.processes) == (30_400_000_000, 9_200_000_000, 4)
    assert differing(record, booked(raw, raw.present, 2)) == []
    assert differing(record, on_one_slot(raw, 2)) == ["overhead", "idle"]


def test_a_record_that_was_changed_by_more_than_10_ms_per_process_and_2_percent_is_found(folder: Path) -> None:
    raw, path = read_events(folder), folder / "run.json"
    run = json.loads(path.read_text())
    run["metrics"]["slots.overhead"]["value"] *= 1.019
    path.write_text(json.dumps(run))
    assert differing(recorded(folder), booked(raw, raw.present, 2)) == []
    run["metrics"]["slots.overhead"]["value"] *= 1.002
    path.write_text(json.dumps(run))
    assert differing(recorded(folder), booked(raw, raw.present, 2)) == ["overhead"]


@pytest.mark.parametrize(("words", "count"), [(["tuneoff.run.trial"], 1), (["tuneoff.run.trial", "--test"], 0), (["pass"], 0)])
def test_the_watcher_sees_the_trials_processes_below_a_command_from_their_start_to_their_exit(
    words: list[str], count: int
) -> None:
    before = time.monotonic_ns()
    parent = subprocess.Popen([sys.executable, "-c", CHILD, *words], stdin=subprocess.PIPE)
    assert parent.stdin is not None
    with Watcher(parent.pid) as watcher:
        deadline = time.monotonic() + 20
        while (len(watcher.family) < 2 or len(watcher.trials) < count) and time.monotonic() < deadline:
            time.sleep(0.01)
        released = time.monotonic_ns()
        parent.stdin.close()
        parent.wait()
    after = time.monotonic_ns()
    assert len(watcher.seen) == count
    for start, end in watcher.seen:
        assert before - TICK_NS <= start < released <= end <= after


@pytest.mark.slow
@pytest.mark.parametrize("name", ["syne-tune-null", "katib-null"])
def test_a_run_agrees_with_its_events_and_with_its_processes_seen_from_outside(name: str, tmp_path: Path) -> None:
    assert one_run(name, 0, 0, tmp_path / "run")
