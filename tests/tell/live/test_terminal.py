"""The display on a terminal: it fits each, says the most important first, leaves nothing behind, and obeys no name."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from builders.live_states import CURRENT, row, state
from tell.live.emulator import Emulator
from tuneoff.run.run_ends import STATUSES
from tuneoff.tell.live.state import Activity, LiveState, cells_of
from tuneoff.tell.live.terminal import IMPORTANCE, SIGNS, STYLES, Terminal, View, map_lines, most_important

BARE: dict[str, Any] = {"signs": (".", "."), "current": None, "seconds_left": None}


def lines_of(shown: LiveState, width: int, height: int, **options: object) -> list[str]:
    """Return the lines on a terminal of this size."""
    console = Console(width=width, height=height, color_system=None, force_terminal=True, **options)  # type: ignore[arg-type]
    with console.capture() as capture:
        console.print(View(shown), end="")
    return [line.rstrip() for line in capture.get().split("\n")]


def texts(found: tuple[list[Text], int]) -> list[str]:
    return [line.plain for line in found[0]]


def made(columns: int, rows: int = 24) -> tuple[Emulator, Terminal]:
    emulator = Emulator(columns, rows)
    return emulator, Terminal(emulator, (columns, rows))


def test_the_display_shows_the_matrix_and_the_current_run() -> None:
    assert lines_of(state(), 111, 30) == [
        "digits: 5 of 9 runs ended, 1 failed, 1 timeout; about 3.3 min left in all",
        "serial ##F>.",
        "optuna #T-I.",
        "# 3 done  F 1 failed  T 1 timeout  I 1 interrupted  - 1 skipped  > 1 running  . 2 planned",
        "[3/9] serial seed 0",  # not taken for markup
        " 5/20 trials, 2 running, 1 pruned, 1 failed, best 0.97531, 30.0 trials/min, 30 s left",
    ]


def test_forty_columns_hold_all_figures() -> None:
    lines = lines_of(state(), 40, 30)
    assert all(len(line) < 40 for line in lines)
    joined = " ".join(line.strip() for line in lines)
    for part in ("5 of 9 runs ended", "about 3.3 min left in all", "F 1 failed", ". 2 planned", "best 0.97531", "30 s left"):
        assert part in joined


@given(width=st.integers(1, 200), height=st.integers(1, 60), name=st.text(max_size=40))
def test_the_display_fits_every_terminal(width: int, height: int, name: str) -> None:
    shown = state(name=name, current=replace(CURRENT, name=name * 3), problems=(name,), folder=name)
    console = Console(width=width, height=height, force_terminal=True)
    for one in (shown, replace(shown, activity=Activity.STOPPED, current=None)):
        with console.capture() as capture:
            console.print(View(one), end="")
        lines = re.sub(r"\x1b\[[\d;]*m", "", capture.get()).split("\n")
        assert len(lines) <= max(1, height - 1)
        assert all(cell_len(line) <= max(2, width - 1) for line in lines)  # 2: one character may be as wide
        assert "".join(lines).isprintable()


def test_the_map_takes_at_most_a_third_of_the_height() -> None:
    rows = tuple(replace(state().rows[0], text=f"row {number}", adapter=f"a{number % 3}") for number in range(200))
    lines = lines_of(state(rows=rows), 81, 31)
    shown = [line for line in lines if set(line.split(" ", 1)[-1]) <= set("#F>. ")]
    assert 0 < len(shown) <= 10
    assert any("a sign is" in line for line in lines)


def test_on_a_terminal_of_four_rows_the_current_run_stays() -> None:
    assert lines_of(state(), 111, 4)[-2] == "[3/9] serial seed 0"


@pytest.mark.parametrize(
    ("activity", "said"), [(Activity.STOPPED, "no command works here any more"), (Activity.ELSEWHERE, "started on host h")]
)
def test_it_is_said_where_nobody_is_seen_to_work(activity: Activity, said: str) -> None:
    assert any(line.startswith(said) for line in lines_of(state(activity=activity, current=None, host="h"), 200, 30))


# --- the map ---


def test_a_row_per_cell_of_the_matrix_where_they_fit() -> None:
    found = map_lines([row("serial random", "##F>."), row("optuna", "#- ..")], 40, 5)
    assert texts(found) == ["serial random ##F>.", "optuna        #- .."]
    assert found[1] == 1


def test_a_long_label_is_cut_in_its_middle() -> None:
    (line,) = texts(map_lines([row("adapter-with-a-long-name random training_set=300", "#" * 10)], 30, 4))
    assert (len(line), line[-10:], line[:9], ".." in line) == (30, "#" * 10, "adapter-w", True)


rows_of = st.lists(
    st.tuples(
        st.text(st.characters(max_codepoint=0x2FF), min_size=1, max_size=30),
        st.text(alphabet="".join(SIGNS.values()) + " ", min_size=1, max_size=40),
        st.sampled_from("abcdef"),
    ),
    min_size=1,
    max_size=40,
)


@given(rows=rows_of, width=st.integers(10, 200), most=st.integers(1, 20))
def test_the_map_fits_and_shows_every_status_that_needs_attention(
    rows: list[tuple[str, str, str]], width: int, most: int
) -> None:
    longest = max(len(signs) for _, signs, _ in rows)
    matrix = [row(text, signs.ljust(longest), adapter * 3) for text, signs, adapter in rows]
    lines, runs_per_sign = map_lines(matrix, width, most)
    assert len(lines) <= most
    assert all(line.cell_len <= width for line in lines)
    present = {cell.status for cell in cells_of(matrix)}
    shown = "".join(line.plain[span.start : span.end] for line in lines for span in line.spans)
    if present:
        assert SIGNS[most_important(present)] in shown
    if runs_per_sign == 1:
        assert sorted(shown) == sorted(sign for _, signs, _ in rows for sign in signs.replace(" ", ""))


def test_every_status_has_a_sign_of_its_own_and_a_place() -> None:
    assert set(SIGNS) == set(STYLES) == set(IMPORTANCE) == set(STATUSES)
    assert len(set(SIGNS.values())) == len(SIGNS)


# --- the screen ---


def test_lines_scroll_above_the_display_which_goes_at_the_end() -> None:
    emulator, terminal = made(60)
    terminal.line("first")
    terminal.show(state(**BARE))
    display = emulator.lines[1:]
    assert display[0].startswith("digits: 0 of 2 runs ended")
    terminal.line("second " * 20)
    assert emulator.lines[0] == "first"
    assert "".join(emulator.lines[1:4]).split() == ["second"] * 20
    assert emulator.lines[4:] == display
    terminal.show(state(**{**BARE, "signs": ("#", ".")}))
    assert emulator.lines[4].startswith("digits: 1 of 2 runs ended")
    terminal.close()
    assert [line for line in emulator.lines if line][-1].endswith("second")
    assert (emulator.row, emulator.column) == (4, 0)


@pytest.mark.parametrize("colour", [False, True])
def test_colours_are_left_out_where_they_are_not_wanted(colour: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "" if colour else "1")
    emulator, terminal = made(60)
    terminal.line("bad", "red")
    terminal.show(state())
    assert ("\x1b[31m" in "".join(emulator.writes)) is colour
    assert bool(re.search(r"\x1b\[[\d;]*m", "".join(emulator.writes))) is colour


def test_a_terminal_that_went_away_is_no_error() -> None:
    emulator, terminal = made(40)
    emulator.write = lambda text: (_ for _ in ()).throw(OSError(5, "gone"))  # type: ignore[method-assign]
    terminal.show(state())
    terminal.line("b")
    terminal.close()


def test_what_did_not_change_is_not_written_again_and_the_cursor_never_hidden() -> None:
    """A command that is killed could not show it again."""
    emulator, terminal = made(60)
    terminal.show(state())
    count = len(emulator.writes)
    terminal.show(state())
    assert len(emulator.writes) == count
    terminal.show(state(name="x"))
    assert len(emulator.writes) > count
    terminal.close()
    assert "?25" not in "".join(emulator.writes)


def test_a_failure_is_never_hidden_by_what_went_well() -> None:
    for sign in "F#":
        (line,) = texts(map_lines([row("x", f"{'#' * 400}{sign}{'.' * 400}")], 40, 1))
        assert ("F" in line) is (sign == "F")
