"""Lines that stay at the bottom of a terminal while others scroll above them.

Each change is one write, of the lines that differ alone, and nothing is erased before it is written again: no flicker.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import TextIO

from rich.cells import cell_len

from tuneoff.tell.live.screen import Line

Size = tuple[int, int]  # columns, rows
DEFAULT_SIZE: Size = (80, 24)
COLOURS = {"good": "32", "bad": "31", "warn": "33", "dim": "2", "bold": "1", "live": "36"}
ERASE_LINE, ERASE_BELOW, RESET = "\x1b[K", "\x1b[J", "\x1b[0m"


class Footer:
    """Writes to a terminal. A terminal that went away is no error: what it shows must not end a matrix."""

    def __init__(self, stream: TextIO, colour: bool, size: Callable[[], Size] | None = None) -> None:
        self._stream, self._colour = stream, colour
        self._size = size or (lambda: size_of(stream))
        self._lines: list[Line] = []
        self._width = 0  # of the terminal, when they were written

    def size(self) -> Size:
        """Return the columns and rows that lines may have; the last column stays free, as some terminals wrap there."""
        columns, rows = self._size()
        return max(1, columns - 1), max(1, rows - 1)

    def show(self, lines: Sequence[Line]) -> None:
        """Show these lines in place of those that were there."""
        columns = self._size()[0]
        is_resized = self._lines and columns != self._width
        if list(lines) == self._lines and not is_resized:
            return
        keeps = not is_resized and len(self._lines) <= len(lines)
        text = self._to_top(columns)
        for place, line in enumerate(lines):
            is_known = keeps and place < len(self._lines) and self._lines[place] == line
            text += "" if is_known else f"{self._text(line)}{ERASE_LINE}"
            text += "\r\n" if place + 1 < len(lines) else ""
        self._write(text + ("" if keeps else ERASE_BELOW))
        self._lines, self._width = list(lines), columns

    def print(self, text: str, style: str = "") -> None:
        """Write a line above the others; it may be longer than the terminal is wide."""
        columns = self._size()[0]
        above = f"{self._to_top(columns)}{ERASE_BELOW if self._lines else ''}{self._text(((text, style),))}\n"
        below = "\r\n".join(f"{self._text(line)}" for line in self._lines)
        self._write(above + below)
        self._width = columns

    def close(self) -> None:
        """Take the lines away."""
        if self._lines:
            self._write(f"{self._to_top(self._size()[0])}{ERASE_BELOW}")
            self._lines = []

    def _to_top(self, columns: int) -> str:
        """Return what moves to the first line: a terminal that became narrower has wrapped the longer ones."""
        if not self._lines:
            return ""
        rows = sum(max(1, -(-_length(line) // max(1, columns))) for line in self._lines)
        return "\r" + (f"\x1b[{rows - 1}A" if rows > 1 else "")

    def _text(self, line: Line) -> str:
        if not self._colour:
            return "".join(text for text, _ in line)
        return "".join(f"\x1b[{COLOURS[style]}m{text}{RESET}" if style else text for text, style in line)

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


def _length(line: Line) -> int:
    return sum(cell_len(text) for text, _ in line)


def size_of(stream: TextIO) -> Size:
    """Return a terminal's size; a usual one where it has none."""
    try:
        columns, rows = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return DEFAULT_SIZE
    return (columns or DEFAULT_SIZE[0], rows or DEFAULT_SIZE[1])


def is_terminal(stream: TextIO) -> bool:
    """Tell whether a stream is a terminal on which lines can be replaced."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
