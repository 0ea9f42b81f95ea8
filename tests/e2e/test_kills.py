"""A killed command leaves nothing behind and resumes. `make kill-test` does this at 20 random moments."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from e2e import random_kills
from e2e.following import Following
from e2e.matrix_runs import Broken, check_finished_runs, finish
from tuneoff.base.processes import descendants, end_all

pytestmark = pytest.mark.slow(first=True)


def test_compare_killed_at_random_moments_leaves_nothing_and_resumes(tmp_path: Path) -> None:
    file = tmp_path / "one_seed.yaml"
    file.write_text(f"include: {random_kills.MATRIX}\nseeds: [0]\n")
    random_kills.kill_many(file, tmp_path / "results", 1, random.Random(os.getpid()), 12.0)


def test_kills_that_come_too_late_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    too_late = [True, False, True, True, False]
    folders: list[str] = []

    def kill_once(file: Path, results: Path, *arguments: object) -> random_kills.Kill:
        folders.append(results.name)
        ended_before = too_late[len(folders) - 1]
        return random_kills.Kill(after_seconds=1.0, gone_seconds=0.1, runs_done=0, ended_before=ended_before)

    monkeypatch.setattr(random_kills, "kill_once", kill_once)
    monkeypatch.setattr(random_kills, "finish", lambda file, folder: None)
    monkeypatch.setattr(random_kills, "run_ends", lambda folder: [])
    random_kills.kill_many(random_kills.MATRIX, tmp_path / "results", 2, random.Random(0), 20.0)
    assert folders == ["results-0", "results-1", "results-1", "results-2", "results-3"]
    assert [line[:8] for line in capsys.readouterr().out.splitlines() if line.startswith("kill")] == ["kill  1:", "kill  2:"]


def test_kills_that_always_come_too_late_end_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late = random_kills.Kill(after_seconds=1.0, gone_seconds=0.1, runs_done=0, ended_before=True)
    monkeypatch.setattr(random_kills, "kill_once", lambda *arguments: late)
    with pytest.raises(Broken, match="shorten --longest"):
        random_kills.kill_many(random_kills.MATRIX, tmp_path / "results", 2, random.Random(0), 20.0)


def test_the_checks_notice_a_daemon_its_port_and_its_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_kills, "GONE_WITHIN_SECONDS", 0.2)
    before = set(descendants(os.getpid()))
    try:
        assert "left 0.2 s after a kill" in random_kills.control(random_kills.MATRIX, tmp_path / "results")
    finally:
        end_all(lambda: set(descendants(os.getpid())) - before)


def test_the_checks_notice_what_is_left_when_the_next_command_begins_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random_kills, "SETTLE_SECONDS", 0.1)
    following = Following()
    left, resumed = (subprocess.Popen(["sleep", "60"]) for _ in range(2))
    try:
        with pytest.raises(Broken, match=rf"left then: process {left.pid} \(sleep 60\)$"):
            random_kills.check_left(following, resumed, "then")
    finally:
        for process in (left, resumed):
            process.kill()
            process.wait()
    random_kills.check_left(following, None, "then")


def test_the_checks_notice_a_changed_event_file(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(f"include: {random_kills.MATRIX}\nseeds: [0]\nadapters: [serial]\n")
    results = tmp_path / "results"
    finish(file, results)
    (events, *_) = results.glob("runs/*/*/events/worker-*.jsonl")
    as_it_was = events.read_bytes()
    with events.open("a") as log:
        log.write("{}\n")
    with pytest.raises(Broken, match="changed"):
        check_finished_runs(results)
    events.write_bytes(as_it_was)
