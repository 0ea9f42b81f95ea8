"""The display of the matrix that this process runs, and where it appears."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import pty
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from builders.live_folders import Folder
from builders.live_states import LIVE, Clock
from tell.live.emulator import Emulator
from tuneoff.cli import main
from tuneoff.run.progress import Listener
from tuneoff.tell.live.display import Above, Board, LiveProgress, shown
from tuneoff.tell.live.footer import Footer
from tuneoff.tell.report.progress import PlainProgress, progress


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "results", ("serial", "optuna", "katib"), seeds=1, skipped="katib")


def test_runs_that_ended_scroll_above_the_map_and_the_current_run(folder: Folder) -> None:
    terminal, clock = Emulator(120), Clock()
    live: Listener = LiveProgress(Footer(terminal, False, terminal.size), Board(folder.plan, folder.path), clock)
    live.noted("power: none")
    live.run_started(1, 3, "serial [seed 0]", folder.plan.runs[0].run_id)
    clock.now += 1.0
    live.run_progress(replace(LIVE, run_id=folder.plan.runs[0].run_id))
    assert terminal.lines[:2] == ["power: none", "digits: 0 of 2 runs ended"]
    assert "serial random >" in terminal.lines
    assert "[1/3] serial [seed 0]" in terminal.lines  # not taken for markup
    assert "5/20 trials, 2 running, 1 pruned, 1 failed, best 0.97531" in terminal.text
    live.run_ended(1, 3, "serial seed 0", "done", None, 25.0)
    live.run_started(2, 3, "optuna seed 0", folder.plan.runs[1].run_id)
    assert terminal.lines[1:3] == ["[1/3] serial seed 0: done in 25 s", "digits: 1 of 2 runs ended; about 25 s left in all"]
    live.run_ended(2, 3, "optuna seed 0", "failed", "step deploy failed:\n oops\x1b", 2.0)
    live.run_ended(0, 0, "katib seed 0", "skipped", "not installed", 0.0)
    assert "[2/3] optuna seed 0: failed in 2 s: step deploy failed: oops\\x1b" in terminal.lines
    assert "optuna random F" in terminal.lines
    assert isinstance(live, LiveProgress)
    live.close()
    assert terminal.lines[-2:] == ["[2/3] optuna seed 0: failed in 2 s: step deploy failed: oops\\x1b", ""]


def test_it_draws_a_few_times_per_second_at_most(folder: Folder) -> None:
    terminal, clock = Emulator(120), Clock()
    live = LiveProgress(Footer(terminal, False, terminal.size), Board(folder.plan, folder.path), clock)
    live.run_started(1, 3, "serial", folder.plan.runs[0].run_id)
    for number in range(100):  # of ten seconds
        clock.now += 0.1
        live.run_progress(replace(LIVE, run_id=folder.plan.runs[0].run_id, seconds=float(number)))
    assert 10 <= len(terminal.writes) <= 22


def test_what_ended_in_an_earlier_command_is_on_the_map_from_the_start(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "results", seeds=4)
    folder.end("optuna", 3)
    terminal = Emulator(120)
    live = LiveProgress(Footer(terminal, False, terminal.size), Board(folder.plan, folder.path))
    live.run_started(1, 8, "serial", folder.plan.runs[0].run_id)
    assert "optuna random ...#" in terminal.lines
    assert "about" in terminal.lines[0] or "left" not in terminal.lines[0]


def test_log_messages_appear_above_the_display(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Emulator(80)
    monkeypatch.setattr(sys, "stderr", terminal)
    main.set_up(debug=False)
    with shown(Footer(terminal, False, terminal.size), Board(folder.plan, folder.path)) as live:
        live.run_started(1, 3, "serial", folder.plan.runs[0].run_id)
        logging.getLogger("tuneoff.x").warning("something")
        print("half a line", end="", file=sys.stderr)
        assert terminal.lines[0] == "tuneoff: something"
        assert terminal.lines[1].startswith("digits: ")
    assert terminal.lines == ["tuneoff: something", "half a line", ""]
    assert sys.stderr is terminal


def test_the_display_appears_on_a_terminal_only(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with progress(io.StringIO(), folder.plan, folder.path) as listener:
        assert isinstance(listener, PlainProgress)
    ours, theirs = pty.openpty()
    try:
        with os.fdopen(theirs, "w") as terminal:
            with progress(terminal, folder.plan, folder.path) as listener:
                assert isinstance(listener, LiveProgress)
            monkeypatch.setenv("TERM", "dumb")
            with progress(terminal, folder.plan, folder.path) as listener:
                assert isinstance(listener, PlainProgress)
    finally:
        os.close(ours)


def test_a_display_that_fails_to_draw_is_taken_away(folder: Folder) -> None:
    terminal = Emulator(80)
    with (
        contextlib.suppress(KeyboardInterrupt),
        shown(Footer(terminal, False, terminal.size), Board(folder.plan, folder.path)) as live,
    ):
        live.run_started(1, 3, "serial", folder.plan.runs[0].run_id)
        raise KeyboardInterrupt
    assert terminal.text == ""


def test_what_a_library_writes_cannot_move_the_cursor() -> None:
    stream = io.StringIO()
    above = Above(Footer(stream, colour=False))
    above.write("\x1b[2Jgone\n 10 %\r 20 %\r\na\tb\n\x1b[1A")
    above.end()
    assert stream.getvalue() == "\\x1b[2Jgone\n 20 %\na       b\n\\x1b[1A\n"
