"""A small terminal: what is on its screen after what was written. It wraps long lines."""

from __future__ import annotations

import io
import re

TOKEN = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|(.)", re.DOTALL)


class Emulator(io.StringIO):
    """A stream that is a terminal of so many columns; its height has no end."""

    def __init__(self, columns: int, rows: int = 24) -> None:
        super().__init__()
        self.columns, self.height = columns, rows
        self.rows: list[tuple[str, bool]] = [("", False)]  # text, and whether it goes on in the next row
        self.row, self.column = 0, 0
        self.writes: list[str] = []

    def isatty(self) -> bool:
        return True

    def size(self) -> tuple[int, int]:
        return self.columns, self.height

    @property
    def lines(self) -> list[str]:
        """The lines as a person sees them, without blanks at their ends."""
        return [text.rstrip() for text, _ in self.rows]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def write(self, text: str) -> int:
        self.writes.append(text)
        for number, kind, character in TOKEN.findall(text):
            if character:
                self._put(character)
            elif kind == "A":
                self.row = max(0, self.row - int(number or 1))
            elif kind == "K":
                assert number == "2"
                self.rows[self.row] = ("", False)
            else:
                assert kind == "m", f"an unknown sequence: {number}{kind}"
        return len(text)

    def _put(self, character: str) -> None:
        if character == "\r":
            self.column = 0
        elif character == "\n":  # of a terminal that returns the carriage, too
            self._next()
        else:
            if self.column >= self.columns:
                self.rows[self.row] = (self.rows[self.row][0], True)
                self._next()
            text, goes_on = self.rows[self.row]
            text = text.ljust(self.column)
            self.rows[self.row] = (text[: self.column] + character + text[self.column + 1 :], goes_on)
            self.column += 1

    def _next(self) -> None:
        self.row, self.column = self.row + 1, 0
        if self.row == len(self.rows):
            self.rows.append(("", False))
