"""Progress of the matrix that this process runs, and of one that is watched: on a terminal, and line by line anywhere else."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import pty
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from builders.live_folders import Folder
from builders.live_states import LIVE, Clock
from command_line import Call
from tell.live.emulator import Emulator
from tuneoff.cli import main
from tuneoff.run.progress import Listener, LiveRun
from tuneoff.tell.live.display import Above, Lines, Progress, output_on, progress, watch
from tuneoff.tell.live.sentences import end_text, trials_text
from tuneoff.tell.live.terminal import Terminal
from tuneoff.tell.live.watcher import Watcher


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    folder = Folder(tmp_path / "results", ("serial", "optuna", "katib"), seeds=2, skipped="katib")
    folder.take()
    yield folder
    folder.leave(ended=True)


@pytest.fixture
def two(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "two", seeds=1)


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> Emulator:
    for name, value in (("TERM", "xterm"), ("NO_COLOR", "1"), ("COLUMNS", "90"), ("LINES", "24")):
        monkeypatch.setenv(name, value)
    return Emulator(90)


def run_matrix(folder: Folder, listener: Listener, clock: Clock) -> None:
    """Run four runs: one is done, one fails, two are to come; others are skipped, of which no line tells."""
    first, second = (run.run_id for run in folder.plan.to_run[:2])
    listener.noted("power: none")
    listener.run_started(1, 4, "serial [seed 0]", first)
    for _ in range(25):
        clock.now += 1.0
        listener.run_progress(replace(LIVE, run_id=first))
    folder.end("serial", 0)
    listener.run_ended(1, 4, "serial [seed 0]", "done", None, 25.0)
    listener.run_ended(0, 0, "katib seed 0", "skipped", "not installed", 0.0)
    listener.run_started(2, 4, "optuna seed 0", second)
    folder.end("optuna", 0, "failed")
    listener.run_ended(2, 4, "optuna seed 0", "failed", "step deploy failed:\n oops\x1b", 2.0)


def test_lines_tell_starts_ends_and_every_ten_seconds_where_it_stands_with_the_time_left_once_it_is_known(folder: Folder) -> None:
    stream, clock = io.StringIO(), Clock()
    run_matrix(folder, Progress(Lines(stream, clock), Watcher(folder.path, folder.plan), clock), clock)
    first, second = (run.run_id for run in folder.plan.to_run[:2])
    text = "5/20 trials, 2 running, 1 pruned, 1 failed, best 0.97531, 30.0 trials/min, 30 s left"
    assert stream.getvalue().splitlines() == [
        "power: none",
        f"digits: 0 of 4 runs ended; [1/4] serial [seed 0] ({first}): 0/10 trials, step deploy",
        f"digits: 0 of 4 runs ended; [1/4] serial [seed 0] ({first}): {text}",
        f"digits: 0 of 4 runs ended; [1/4] serial [seed 0] ({first}): {text}",
        "[1/4] serial [seed 0]: done in 25 s",
        f"digits: 1 of 4 runs ended; [2/4] optuna seed 0 ({second}): 0/10 trials, step deploy; about 30 s left in all",
        "[2/4] optuna seed 0: failed in 2 s: step deploy failed: oops\\x1b",
    ]


def test_on_a_terminal_what_ended_scrolls_above_the_map_and_the_current_run(folder: Folder, emulator: Emulator) -> None:
    clock = Clock()
    output = Terminal(emulator)
    run_matrix(folder, Progress(output, Watcher(folder.path, folder.plan), clock), clock)
    assert emulator.text.rstrip().splitlines() == [
        "power: none",
        "[1/4] serial [seed 0]: done in 25 s",
        "[2/4] optuna seed 0: failed in 2 s: step deploy failed: oops\\x1b",
        "digits: 2 of 4 runs ended, 1 failed; about 20 s left in all",
        "serial random #.",
        "optuna random F.",
        "katib random  --",
        "# 1 done  F 1 failed  - 2 skipped  . 2 planned",
        "so far: serial 10 s; optuna failed",
        "the next run is being prepared",
    ]
    output.close()
    assert emulator.lines[3:] == [""] * len(emulator.lines[3:])


def test_it_draws_a_few_times_per_second_at_most(folder: Folder, emulator: Emulator) -> None:
    clock, first = Clock(), folder.plan.runs[0].run_id
    live = Progress(Terminal(emulator), Watcher(folder.path, folder.plan), clock)
    live.run_started(1, 4, "serial", first)
    for number in range(100):  # of ten seconds
        clock.now += 0.1
        live.run_progress(replace(LIVE, run_id=first, seconds=float(number)))
    assert 10 <= emulator.text.count("serial random") + sum("serial random" in text for text in emulator.writes) <= 25


@pytest.mark.parametrize(("is_repeated", "left"), [(False, "about 10 s left in all"), (True, "about 30 s left in all")])
def test_the_time_left_is_of_the_runs_that_are_left(tmp_path: Path, is_repeated: bool, left: str) -> None:
    folder = Folder(tmp_path / "results", seeds=2)
    for adapter, seed in (("serial", 0), ("optuna", 0), ("serial", 1)):
        folder.end(adapter, seed)
    stream = io.StringIO()
    listener = Progress(Lines(stream), Watcher(folder.path, folder.plan))
    runs = [run.run_id for run in folder.plan.to_run]
    asked = [runs[3], *runs[:2]] if is_repeated else runs[3:]  # the block of seed 0 again, whole
    listener.begun(asked)
    listener.run_started(1, len(asked), "optuna seed 1", runs[3])
    assert stream.getvalue().endswith(f"; {left}\n")


def test_log_messages_appear_above_the_display_which_is_taken_away_at_an_interrupt(
    folder: Folder, emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", emulator)
    main.set_up(debug=False)
    with contextlib.suppress(KeyboardInterrupt), progress(emulator, folder.plan, folder.path) as live:
        live.run_started(1, 3, "serial", folder.plan.runs[0].run_id)
        logging.getLogger("tuneoff.x").warning("something")
        print("half a line", end="", file=sys.stderr)
        assert emulator.lines[0] == "tuneoff: something"
        assert emulator.lines[1].startswith("digits: ")
        raise KeyboardInterrupt
    assert emulator.text.rstrip() == "tuneoff: something\nhalf a line"
    assert sys.stderr is emulator


def test_what_a_library_writes_cannot_move_the_cursor_and_a_reader_that_went_away_ends_no_matrix(folder: Folder) -> None:
    stream = io.StringIO()
    above = Above(Lines(stream))
    above.write("\x1b[2Jgone\n 10 %\r 20 %\r\na\tb\n\x1b[1A")
    above.end()
    assert stream.getvalue() == "\\x1b[2Jgone\n 20 %\na       b\n\\x1b[1A\n"
    stream.close()
    clock = Clock()
    run_matrix(folder, Progress(Lines(stream, clock), Watcher(folder.path, folder.plan), clock), clock)


def test_the_display_appears_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(output_on(io.StringIO()), Lines)
    ours, theirs = pty.openpty()
    try:
        with os.fdopen(theirs, "w") as stream:
            assert isinstance(output_on(stream), Terminal)
            monkeypatch.setenv("TERM", "dumb")
            assert isinstance(output_on(stream), Lines)
    finally:
        os.close(ours)


def test_a_run_in_words_has_its_step_outside_of_the_trials_and_an_end_no_reason_that_is_the_status() -> None:
    begun = LiveRun(run_id="abc", step="deploy", seconds=2.0, trials=20, epochs_per_trial=3)
    assert trials_text(begun) == "0/20 trials, step deploy"
    assert trials_text(replace(LIVE, seconds=1.0, step="test")).endswith("5.0 trials/s, step test")
    assert end_text("timeout", "took\ntoo long", 61.0) == "timeout in 61 s: took too long"
    assert end_text("interrupted", "interrupted", 0.0) == "interrupted"


# --- watch ---


class Matrix:
    """What happens in the folder, one thing whenever the watch waits."""

    def __init__(self, *happenings: Callable[[], object]) -> None:
        self._happenings = list(happenings)
        self.now = 0.0

    def wait(self, seconds: float) -> None:
        self.now += seconds
        if self._happenings:
            self._happenings.pop(0)()

    def clock(self) -> float:
        return self.now


def of(folder: Folder, status: str) -> Matrix:
    """Return a matrix of two runs, of which the second ends so."""
    return Matrix(
        lambda: folder.end("serial", 0, execution="9"),
        lambda: folder.begin("optuna", 0).trial("1"),
        *[lambda: None] * 12,
        lambda: folder.end("optuna", 0, status, execution="9"),  # type: ignore[arg-type]
        lambda: folder.leave(ended=True),
    )


@pytest.mark.parametrize(("status", "code"), [("failed", 1), ("interrupted", 130)])
def test_lines_tell_what_ends_and_the_exit_code_is_that_of_the_matrix(two: Folder, status: str, code: int) -> None:
    two.take()
    running = two.begin("serial", 0)
    running.write()
    stream, matrix = io.StringIO(), of(two, status)
    assert watch(Watcher(two.path), stream, matrix.wait, matrix.clock) == code
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith(f"digits: 0 of 2 runs ended; [1/2] serial random seed 0 ({running.spec.run_id}): 0/10 trials")
    assert "serial random seed 0: done in 10 s" in lines
    assert any(line.startswith(f"optuna random seed 0: {status}") for line in lines)
    assert len([line for line in lines if "[2/2] optuna random seed 0" in line and "1/10 trials, best 0.5" in line]) == 2
    assert len(lines) <= 9


def test_a_terminal_shows_the_display_and_keeps_the_last_words(two: Folder, emulator: Emulator) -> None:
    two.take()
    two.begin("serial", 0).write()
    matrix = of(two, "done")
    assert watch(Watcher(two.path), emulator, matrix.wait, matrix.clock) == 0
    assert emulator.text.rstrip().splitlines() == [
        "serial random seed 0: done in 10 s",
        "optuna random seed 0: done in 10 s",
        "digits: 2 of 2 runs ended",
        "so far: serial 10 s; optuna 10 s",
        "all planned runs have ended",
    ]
    assert "optuna random >" in "".join(emulator.writes)


def test_an_end_is_believed_when_it_is_seen_twice(two: Folder) -> None:
    two.take()
    two.leave(ended=False)
    matrix = Matrix(
        two.take,  # a command takes the folder just then
        lambda: two.end("serial", 0),
        lambda: two.end("optuna", 0),
        lambda: two.leave(ended=True),
    )
    assert watch(Watcher(two.path), io.StringIO(), matrix.wait, matrix.clock) == 0


def test_ctrl_c_ends_the_watch_and_leaves_the_terminal_clean(two: Folder, emulator: Emulator) -> None:
    two.take()

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch(Watcher(two.path), emulator, interrupt)
    assert emulator.text.strip() == ""


def test_what_names_would_make_a_terminal_do_is_an_escape_in_text_and_json(two: Folder, call: Call) -> None:
    two.end("serial", 0, "failed", execution="1")
    two.write_plan(name="\x1b]0;x\x07<script>")
    for arguments in (["--once"], ["--once", "--json"]):
        out = call("watch", two.path, *arguments).out
        assert "\x1b" not in out
        assert "x1b" in out
