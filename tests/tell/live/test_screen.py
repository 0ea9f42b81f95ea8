"""The display: it fits every terminal, says the most important first, and obeys no name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from builders.live_states import CURRENT, LIVE, state
from tuneoff.run.progress import LiveRun
from tuneoff.tell.live.screen import Line, bar_text, screen
from tuneoff.tell.live.state import Activity


def texts(lines: list[Line]) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]


def test_the_display_shows_the_matrix_and_the_current_run() -> None:
    assert texts(screen(state(), 110, 30)) == [
        "digits: 5 of 9 runs ended, 1 failed, 1 timeout; about 3.3 min left in all",
        "serial ##F>.",
        "optuna #T-I.",
        "# 3 done  F 1 failed  T 1 timeout  I 1 interrupted  - 1 skipped  > 1 running  . 2 planned",
        "[3/9] serial seed 0",
        "  [=====--             ] 5/20 trials, 2 running, 1 pruned, 1 failed, best 0.97531, 30.0 trials/min, 30 s left",
    ]


def test_forty_columns_hold_all_figures() -> None:
    lines = texts(screen(state(), 39, 24))
    assert all(len(line) <= 39 for line in lines)
    joined = " ".join(line.strip() for line in lines)
    for part in ("5 of 9 runs ended", "about 3.3 min left in all", "F 1 failed", ". 2 planned", "best 0.97531", "30 s left"):
        assert part in joined


@given(width=st.integers(1, 200), height=st.integers(1, 60), name=st.text(max_size=40))
def test_the_display_fits_every_terminal(width: int, height: int, name: str) -> None:
    made = state(name=name, current=replace(CURRENT, name=name * 3), problems=(name,), folder=name)
    for one in (made, replace(made, activity=Activity.STOPPED, current=None)):
        lines = screen(one, width, height)
        assert len(lines) <= height
        assert all(sum(cell_len(text) for text, _ in line) <= width for line in lines)
        assert all(text.isprintable() for line in lines for text, _ in line)


def test_the_map_takes_at_most_a_third_of_the_height() -> None:
    rows = tuple(replace(state().rows[0], text=f"row {number}", adapter=f"a{number % 3}") for number in range(200))
    lines = texts(screen(state(rows=rows), 80, 30))
    shown = [line for line in lines if set(line.split(" ", 1)[-1]) <= set("#F>. ")]
    assert 0 < len(shown) <= 10
    assert any("a sign is" in line for line in lines)


def test_on_a_terminal_of_three_rows_the_current_run_stays() -> None:
    assert texts(screen(state(), 110, 3))[-2] == "[3/9] serial seed 0"


def test_what_a_name_would_make_the_terminal_do_is_shown() -> None:
    lines = texts(screen(state(name="\x1b[2Jx", current=replace(CURRENT, name="a\nb\x07")), 110, 30))
    assert lines[0].startswith("\\x1b[2Jx: ")
    assert "[3/9] a\\nb\\x07" in lines


@pytest.mark.parametrize("activity", [Activity.STOPPED, Activity.ELSEWHERE])
def test_it_is_said_where_nobody_is_seen_to_work(activity: Activity) -> None:
    (said,) = [line for line in screen(state(activity=activity, current=None, host="h"), 110, 30) if line[0][1] == "warn"]
    assert said[0][0].startswith(("nobody works here any more", "begun on host h"))


def test_the_bar_has_ended_and_running_trials() -> None:
    assert bar_text(LIVE) == "[=====--             ]"
    assert bar_text(replace(LIVE, completed=50, running=9)) == f"[{'=' * 20}]"
    assert bar_text(LiveRun(run_id="", step="", seconds=0, trials=0, epochs_per_trial=1)) == f"[{' ' * 20}]"
