"""Numbers and names as a table's cells show them."""

from __future__ import annotations

import re
from collections.abc import Callable

from tuneoff.report.summary import Spread

MISSING = "–"
FOLD = 14  # longest line of a name, where it can be broken


def cell(spread: Spread | None, write: Callable[[float], str], *, stacked: bool = False) -> str:
    """Return the median and, below it, least–greatest; `stacked`: those on two lines."""
    if spread is None:
        return MISSING
    median, low, high = map(write, (spread.median, spread.low, spread.high))
    end = "\n" if stacked else ""
    return median if spread.n == 1 else f"{median}\n{low}–{end}{high}"


def score(value: float) -> str:
    """Return four decimals: one of 10 000 test images counts."""
    return f"{value:.4f}" if abs(value) < 100 else f"{value:.5g}"


def seconds(milliseconds: float) -> str:
    """Return seconds with about three digits."""
    return number(milliseconds / 1000)


def number(value: float) -> str:
    """Return about three digits, without an exponent and without false precision."""
    size = abs(value)
    if size == 0:
        return "0"
    digits = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
    return f"{value:.{digits}f}"


def folded(text: str, width: int = FOLD) -> str:
    """Return a name on lines of at most `width`, broken after `.`, `:`, `_`, `,` and blanks only, never in a word."""
    lines = [""]
    for piece in re.findall(r"[^.:_, ]*[.:_, ]|[^.:_, ]+", text):
        if lines[-1] and len((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)
