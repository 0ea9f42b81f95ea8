"""Lines at the bottom of a terminal: they replace each other, others scroll above, and a resize leaves nothing behind."""

from __future__ import annotations

import pytest

from tell.live.emulator import Emulator
from tuneoff.tell.live.footer import COLOURS, Footer
from tuneoff.tell.live.screen import STYLES, Line


def of(*texts: str) -> list[Line]:
    return [((text, ""),) for text in texts]


def made(columns: int, rows: int = 24, *, colour: bool = False) -> tuple[Emulator, Footer]:
    terminal = Emulator(columns, rows)
    return terminal, Footer(terminal, colour, terminal.size)


def test_lines_replace_each_other_and_what_is_printed_stays_above() -> None:
    terminal, shown = made(40)
    shown.print("first")
    shown.show(of("a 1", "b", "c"))
    shown.show(of("a 22", "b", "c"))
    shown.print("second " * 8)  # longer than the terminal is wide
    assert terminal.lines == ["first", *_wrapped("second " * 8, 40), "a 22", "b", "c"]
    shown.show(of("a", "d"))
    assert terminal.lines[-2:] == ["a", "d"]
    assert "b" not in terminal.lines
    shown.show(of("a", "d", "e", "f"))
    assert terminal.lines[-4:] == ["a", "d", "e", "f"]
    shown.close()
    assert terminal.lines == ["first", *_wrapped("second " * 8, 40), ""]


def _wrapped(text: str, columns: int) -> list[str]:
    return [text[start : start + columns].rstrip() for start in range(0, len(text), columns)]


@pytest.mark.parametrize("columns", [60, 33, 20, 11])
def test_a_resize_leaves_nothing_of_the_old_lines(columns: int) -> None:
    terminal, shown = made(50)
    shown.print("above")
    shown.show(of("x" * 49, "y" * 30, "z"))
    terminal.resize(columns)
    lines = of("x" * (columns - 1), "y" * (columns - 1), "z")
    shown.show(lines)
    assert terminal.lines == ["above", "x" * (columns - 1), "y" * (columns - 1), "z"]
    terminal.resize(45)
    shown.print("more")
    assert terminal.lines[:2] == ["above", "more"]
    assert terminal.lines[-1] == "z"


def test_a_terminal_that_wraps_is_needed_to_see_a_wrong_resize() -> None:
    terminal, shown = made(50)
    shown.show(of("x" * 49, "z"))
    shown._width = 20  # planted: it is not seen to be narrower
    terminal.resize(20)
    shown._size = lambda: (50, 24)
    shown.show(of("x", "z"))
    assert terminal.lines != ["x", "z"]


def test_what_did_not_change_is_not_written_again() -> None:
    terminal, shown = made(40)
    shown.show(of("same", "1"))
    count = len(terminal.writes)
    shown.show(of("same", "1"))
    assert len(terminal.writes) == count
    shown.show(of("same", "2"))
    assert "same" not in terminal.writes[-1]
    assert terminal.lines == ["same", "2"]
    assert len(terminal.writes) == count + 1  # one write per change


def test_nothing_is_erased_before_it_is_written_again() -> None:
    terminal, shown = made(40)
    shown.show(of("one", "two"))
    shown.show(of("1", "2"))
    assert terminal.writes[-1].index("1") < terminal.writes[-1].index("\x1b[K")


def test_colours_are_left_out_where_they_are_not_wanted() -> None:
    for colour in (False, True):
        terminal, shown = made(40, colour=colour)
        shown.show([(("bad", "bad"), (" plain", ""))])
        assert ("\x1b[31m" in "".join(terminal.writes)) is colour
        assert terminal.lines == ["bad plain"]
    assert set(STYLES.values()) <= set(COLOURS)


def test_a_terminal_that_went_away_is_no_error() -> None:
    terminal, shown = made(40)
    terminal.write = lambda text: (_ for _ in ()).throw(OSError(5, "gone"))  # type: ignore[method-assign]
    shown.show(of("a"))
    shown.print("b")
    shown.close()


def test_one_row_and_one_column_stay_free() -> None:
    assert made(80, 24)[1].size() == (79, 23)
    assert made(1, 1)[1].size() == (1, 1)
