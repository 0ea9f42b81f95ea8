"""The synthetic event log that is derived in the benchmark is one that core accepts without complaint."""

from __future__ import annotations

from pathlib import Path

from benchmarks.speed.specs import make_spec
from benchmarks.speed.synthetic_log import events_per_trial, write_log
from tuneoff.measure.derived import derive_folder
from tuneoff.record.events.reader import EventLog


def test_the_log_derives_to_a_done_run_with_every_trial_complete(tmp_path: Path) -> None:
    trials = write_log(tmp_path / "events", 2000, 8)
    record = derive_folder(tmp_path, make_spec("serial", "null", trials=trials, epochs=8)).record
    assert record.status == "done"
    assert trials == 2000 // events_per_trial(8)
    assert [trial.state for trial in record.trials] == ["completed"] * trials
    assert {len(trial.attempts[0].epochs) for trial in record.trials} == {8}
    assert [flag.name for flag in record.flags] == []


def test_the_log_has_as_many_events_as_asked_for(tmp_path: Path) -> None:
    write_log(tmp_path / "events", 3000, 1)
    log = EventLog(tmp_path / "events")
    assert 3000 <= sum(1 for _ in log) <= 3030
    assert log.statistics.gaps == []
