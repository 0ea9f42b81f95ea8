"""Progress: the lines without a terminal, and what the display says too."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from builders.live_folders import Folder
from builders.live_states import LIVE, Clock
from tuneoff.run.progress import LiveRun
from tuneoff.tell.live.display import Board
from tuneoff.tell.report.progress import PlainProgress, end_text, trials_text


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "results", ("serial", "optuna", "katib"), seeds=2, skipped="katib")


def _matrix(folder: Folder, stream: io.StringIO) -> None:
    """Show a matrix of four runs: one is done, one fails, two are to come; others are skipped, of which no line tells."""
    clock = Clock()
    listener = PlainProgress(stream, Board(folder.plan, folder.path), clock)
    first, second = (run.run_id for run in folder.plan.to_run[:2])
    listener.run_started(1, 4, "serial seed 0", first)
    for _ in range(25):
        clock.now += 1.0
        listener.run_progress(replace(LIVE, run_id=first))
    listener.run_ended(1, 4, "serial seed 0", "done", None, 25.0)
    listener.run_ended(0, 0, "katib seed 0", "skipped", "not installed", 0.0)
    listener.run_started(2, 4, "optuna seed 0", second)
    listener.run_ended(2, 4, "optuna seed 0", "failed", "step deploy failed:\n oops", 2.0)


def test_plain_lines_tell_starts_ends_and_every_ten_seconds_with_the_time_left_once_it_is_known(folder: Folder) -> None:
    stream = io.StringIO()
    _matrix(folder, stream)
    first, second = (run.run_id for run in folder.plan.to_run[:2])
    assert stream.getvalue().splitlines() == [
        f"[1/4] serial seed 0: started ({first})",
        "[1/4] serial seed 0: 5/20 trials, 2 running, 1 pruned, 1 failed, best 0.97531, 30.0 trials/min, 30 s left",
        "[1/4] serial seed 0: 5/20 trials, 2 running, 1 pruned, 1 failed, best 0.97531, 30.0 trials/min, 30 s left",
        "[1/4] serial seed 0: done in 25 s",
        f"[2/4] optuna seed 0: started ({second}); about 75 s left in all",
        "[2/4] optuna seed 0: failed in 2 s: step deploy failed: oops",
    ]


def test_a_note_on_the_whole_matrix_is_one_line(folder: Folder) -> None:
    stream = io.StringIO()
    text = f"power: model [estimated]; {'no better one, ' * 10}"
    PlainProgress(stream, Board(folder.plan, folder.path)).noted(text)
    assert stream.getvalue() == f"{text}\n"


@pytest.mark.parametrize(("is_repeated", "left"), [(False, "about 10 s left in all"), (True, "about 30 s left in all")])
def test_the_time_left_is_of_the_runs_that_are_left(tmp_path: Path, is_repeated: bool, left: str) -> None:
    folder = Folder(tmp_path / "results", seeds=2)
    for adapter, seed in (("serial", 0), ("optuna", 0), ("serial", 1)):
        folder.end(adapter, seed)
    stream, clock = io.StringIO(), Clock()
    listener = PlainProgress(stream, Board(folder.plan, folder.path), clock)
    runs = [run.run_id for run in folder.plan.to_run]
    asked = [runs[3], *runs[:2]] if is_repeated else runs[3:]  # the block of seed 0 again, whole
    listener.begun(asked)
    listener.run_started(1, len(asked), "optuna seed 1", runs[3])
    assert stream.getvalue().endswith(f"; {left}\n")
    clock.now += 10.0
    listener.run_progress(replace(LIVE, run_id=runs[3]))
    assert ("left in all" in stream.getvalue().splitlines()[-1]) is is_repeated


def test_a_reader_that_went_away_ends_no_matrix(folder: Folder) -> None:
    stream = io.StringIO()
    stream.close()
    _matrix(folder, stream)


def test_the_text_of_a_run_names_its_step_outside_of_the_trials() -> None:
    begun = LiveRun(run_id="abc", step="deploy", seconds=2.0, trials=20, epochs_per_trial=3)
    assert trials_text(begun) == "0/20 trials, step deploy"
    assert trials_text(replace(LIVE, seconds=1.0, step="test")).endswith("5.0 trials/s, step test")


def test_an_end_is_one_line_and_a_reason_that_is_the_status_is_not_repeated() -> None:
    assert end_text("timeout", "took\ntoo long", 61.0) == "timeout in 61 s: took too long"
    assert end_text("interrupted", "interrupted", 0.0) == "interrupted"
