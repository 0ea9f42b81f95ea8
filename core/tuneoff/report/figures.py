"""Numbers and names as a table's cells show them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from tuneoff.report.summary import Spread

MISSING = "–"
ESTIMATED = "~"  # before every figure that rests on a model, a constant, or samples with gaps
PREFIXES = {  # units to choose from, the largest first, each with how many of it are one of the stored unit
    "kWh": {"kWh": 1.0, "Wh": 1e3, "mWh": 1e6, "µWh": 1e9},
    "J": {"MJ": 1e-6, "kJ": 1e-3, "J": 1.0, "mJ": 1e3},
    "g": {"kg": 1e-3, "g": 1.0, "mg": 1e3, "µg": 1e6},
    "USD": {"USD": 1.0, "mUSD": 1e3, "µUSD": 1e6},
    "ms": {"s": 1e-3},
}
LONGEST = 10_000  # how often the greatest of a column may be the least, until small ones lose digits
LARGEST = 1e12  # with more digits than this a figure hides the others
FOLD = 14  # longest line of a name, where it can be broken


def cell(spread: Spread | None, write: Callable[[float], str], *, stacked: bool = False, mark: str = "") -> str:
    """Return the median and, below it, least–greatest; `stacked`: those on two lines; `mark`: before both."""
    if spread is None:
        return MISSING
    median, low, high = map(write, (spread.median, spread.low, spread.high))
    end = "\n" if stacked else ""
    return f"{mark}{median}" if spread.n == 1 else f"{mark}{median}\n{mark}{low}–{end}{high}"


def readable_unit(unit: str, values: Iterable[float]) -> tuple[str, float]:
    """Return a unit in which the least of `values` has digits before the point, and the factor from the stored unit.

    Where the greatest would then be too long, it decides.
    """
    sizes = [abs(value) for value in values if value]
    choices = PREFIXES.get(unit, {unit: 1.0})
    if not sizes:
        return (unit, 1.0) if unit in choices else next(iter(choices.items()))
    least, greatest = min(sizes), max(sizes)
    decides = least if greatest < LONGEST * least else greatest
    return next(((name, factor) for name, factor in choices.items() if decides * factor >= 1), list(choices.items())[-1])


def score(value: float) -> str:
    """Return four decimals: one of 10 000 test images counts."""
    return f"{value:.4f}" if abs(value) < 100 else f"{value:.5g}"


def seconds(milliseconds: float) -> str:
    """Return seconds with about three digits."""
    return number(milliseconds / 1000)


def number(value: float) -> str:
    """Return about three digits, without false precision, and with an exponent only where the figure is absurd."""
    size = abs(value)
    if size == 0:
        return "0"
    if size >= LARGEST:
        return f"{value:.3g}"
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
