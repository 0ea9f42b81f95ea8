"""Names and figures as a plot shows them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tuneoff.base.format import figure, folded
from tuneoff.base.output import printable

LETTER = 0.62  # mean width of a letter, in font sizes: a wide font, so that a narrower one of a page fits as well
WHOLE = ("trials", "epochs", "runs")  # are counted
MOST_SAID = 40  # parts of an alternative text


def shown(text: str, most: int | None = None) -> str:
    """Return a name with control characters as escapes, and at most so long: its middle gives way."""
    text = printable(text)
    if most is None or len(text) <= most:
        return text
    head = (most - 1) // 2
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"


def lines(text: str, width: int, most: int = 2) -> str:
    """Return a name on at most so many lines of `width` letters, shortened where it is longer."""
    return "\n".join(shown(line, width) for line in folded(shown(text, width * most), width).split("\n")[:most])


def inches(text: str, size: float) -> float:
    """Return about how wide a text is, of several lines the longest."""
    return max((len(line) for line in text.split("\n")), default=0) * LETTER * size / 72


def value_text(value: float | None, unit: str = "") -> str:
    """Return a figure with its unit; none, or one that is infinite, in words."""
    if value is None or math.isnan(value):
        return "no value"
    if math.isinf(value):
        return "no value"
    text = f"{value:g}" if unit in WHOLE else figure(value)
    return f"{text}{f' {unit}' if unit else ''}"


def said(parts: Sequence[str]) -> str:
    """Return the parts of an alternative text as one, and what was left out of it."""
    if len(parts) <= MOST_SAID:
        return "; ".join(parts) + "."
    return "; ".join(parts[:MOST_SAID]) + f"; and {len(parts) - MOST_SAID} more, which are in the table."
