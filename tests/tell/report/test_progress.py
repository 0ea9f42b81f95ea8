"""Progress: the lines without a terminal, and what the display says too."""

from __future__ import annotations

import io
from dataclasses import replace

from builders.live_states import LIVE, Clock
from tuneoff.run.progress import Listener, LiveRun
from tuneoff.tell.report.progress import PlainProgress, end_text, trials_text


def _matrix(listener: Listener, clock: Clock) -> None:
    """Show a matrix of three runs: one is done, one fails, one is to come; a fourth is skipped, of which no line tells."""
    listener.run_started(1, 3, "serial seed 0", "abc")
    for _ in range(25):
        clock.now += 1.0
        listener.run_progress(LIVE)
    listener.run_ended(1, 3, "serial seed 0", "done", None, 25.0)
    listener.run_ended(0, 0, "katib seed 0", "skipped", "not installed", 0.0)
    listener.run_started(2, 3, "optuna seed 0", "def")
    listener.run_ended(2, 3, "optuna seed 0", "failed", "step deploy failed:\n oops", 2.0)


def test_plain_lines_tell_starts_ends_and_every_ten_seconds() -> None:
    stream, clock = io.StringIO(), Clock()
    _matrix(PlainProgress(stream, clock), clock)
    assert stream.getvalue().splitlines() == [
        "[1/3] serial seed 0: started (abc)",
        "[1/3] serial seed 0: 5/20 trials, 2 running, 1 pruned, 1 failed, best 0.97531, 30.0 trials/min, 30 s left",
        "[1/3] serial seed 0: 5/20 trials, 2 running, 1 pruned, 1 failed, best 0.97531, 30.0 trials/min, 30 s left",
        "[1/3] serial seed 0: done in 25 s",
        "[2/3] optuna seed 0: started (def)",
        "[2/3] optuna seed 0: failed in 2 s: step deploy failed: oops",
    ]


def test_a_note_on_the_whole_matrix_is_one_line() -> None:
    stream = io.StringIO()
    text = f"power: model [estimated]; {'no better one, ' * 10}"
    PlainProgress(stream).noted(text)
    assert stream.getvalue() == f"{text}\n"


def test_a_later_run_knows_the_time_left_in_all() -> None:
    stream, clock = io.StringIO(), Clock()
    listener = PlainProgress(stream, clock)
    listener.run_started(1, 4, "a", "1")
    listener.run_ended(1, 4, "a", "done", None, 50.0)
    listener.run_started(2, 4, "b", "2")
    clock.now += 10.0
    listener.run_progress(LIVE)
    assert stream.getvalue().splitlines()[-1].endswith("30 s left; 2.2 min left in all")


def test_a_reader_that_went_away_ends_no_matrix() -> None:
    stream, clock = io.StringIO(), Clock()
    stream.close()
    _matrix(PlainProgress(stream, clock), clock)


def test_the_text_of_a_run_names_its_step_outside_of_the_trials() -> None:
    begun = LiveRun(run_id="abc", step="deploy", seconds=2.0, trials=20, epochs_per_trial=3)
    assert trials_text(begun) == "0/20 trials, step deploy"
    assert trials_text(replace(LIVE, seconds=1.0, step="test")).endswith("5.0 trials/s, step test")


def test_an_end_is_one_line_and_a_reason_that_is_the_status_is_not_repeated() -> None:
    assert end_text("timeout", "took\ntoo long", 61.0) == "timeout in 61 s: took too long"
    assert end_text("interrupted", "interrupted", 0.0) == "interrupted"
