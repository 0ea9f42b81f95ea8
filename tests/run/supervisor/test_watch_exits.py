"""When the exit of a trial's process is timed, and whose exit is expected."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from builders.event_logs import Log
from run.supervisor.watching import experiment, watched
from trial_runs import events_of
from tuneoff.base import clock
from tuneoff.record.events import schema
from tuneoff.record.events.writer import process_started_ns
from tuneoff.run.progress import Tracker
from tuneoff.run.supervisor.watch import TrialWatch


def living(tmp_path: Path, process: subprocess.Popen[str], boot_id: str | None = None) -> tuple[TrialWatch, Tracker, str]:
    """A process that was started for a trial, of which only its first line is known; and its name."""
    trial_watch, tracker = watched(tmp_path, process.pid)
    tracker.open.clear()
    writer = Log().process("trial", 0, pid=process.pid, boot=boot_id or clock.boot_id())
    header = msgspec.structs.replace(writer.process, process_started_ns=process_started_ns(process.pid))
    tracker.take(header, header)
    return trial_watch, tracker, header.name


def exits_in(folder: Path) -> list[schema.ProcessExited]:
    return list(events_of(folder, schema.ProcessExited))


def test_the_exit_of_a_trial_s_process_is_timed_when_it_happens_and_not_when_it_is_looked_for(
    tmp_path: Path, process: subprocess.Popen[str]
) -> None:
    """It may have had no attempt: it then ended in its imports."""
    trial_watch, _, name = living(tmp_path, process)
    trial_watch.look()
    assert exits_in(tmp_path) == []
    before = clock.monotonic_ns()
    process.kill()
    process.wait()
    after = clock.monotonic_ns()
    deadline = time.monotonic() + 5
    while not (exits := exits_in(tmp_path)) and time.monotonic() < deadline:
        trial_watch.look()
    assert [one.process for one in exits] == [name]
    assert before <= exits[0].t <= after + 50_000_000
    trial_watch.bury_all()
    assert len(exits_in(tmp_path)) == 1


def test_an_exit_that_came_before_anybody_looked_is_not_guessed(tmp_path: Path, process: subprocess.Popen[str]) -> None:
    trial_watch, tracker, _ = living(tmp_path, process)
    process.kill()
    process.wait()
    trial_watch.look()
    trial_watch.bury_all()
    assert exits_in(tmp_path) == []
    assert tracker.arrived == []


@pytest.mark.parametrize("boot_id", [None, "another"])
def test_an_exit_just_before_the_run_s_end_is_written_unless_another_kernel_s_process_has_that_pid(
    tmp_path: Path, process: subprocess.Popen[str], boot_id: str | None
) -> None:
    trial_watch, _, name = living(tmp_path, process, boot_id)
    trial_watch.look()
    process.kill()
    process.wait()
    trial_watch.bury_all()
    assert [one.process for one in exits_in(tmp_path)] == ([name] if boot_id is None else [])


@pytest.mark.parametrize(("role", "arrived"), [("trial", 1), ("pod", 1), ("worker", 0), ("coordinator", 0)])
def test_only_a_process_that_was_started_for_one_trial_is_expected_to_exit(role: str, arrived: int) -> None:
    tracker = Tracker(experiment=experiment(), run_id="r")
    writer = Log().process(role, 0)
    for event in writer.events:
        tracker.take(writer.process, event)
    assert len(tracker.arrived) == arrived
