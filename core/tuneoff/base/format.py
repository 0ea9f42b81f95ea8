"""Numbers and names as a table's cells show them."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator

from tuneoff.base.commands import QUOTED, split_command

MINUTE, HOUR = 60.0, 3600.0  # in seconds
MISSING = "–"
ESTIMATED = "~"  # before every figure that rests on a model, a constant, or samples with gaps
UNITS = {  # of the table of energy, carbon, cost and waste, always the same: tables of one matrix must be comparable
    "kWh": ("J", 3.6e6),
    "USD": ("mUSD", 1e3),
    "ms": ("s", 1e-3),
}
LARGEST = 1e12  # with more digits than this a figure hides the others
LONG = 1e7  # from here on a figure of a fixed unit has an exponent
SMALL = 0.0995  # below, two decimals say less than two digits
MOST_DECIMALS = 6
FOLD = 14  # longest line of a name, where it can be broken


def counted(count: int, what: str) -> str:
    """Return a number of things: "1 run", "2 runs"."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def counted_range(counts: Iterable[int], what: str) -> str:
    """Return `3 trials`, or `3 to 8 trials` of different counts; "" of none."""
    ordered = sorted({*counts})
    least = f"{ordered[0]} to " if len(ordered) > 1 else ""
    return f"{least}{counted(ordered[-1], what)}" if ordered else ""


def listed(names: Iterable[str], word: str = "and") -> str:
    """Return names as people list them: "a, b and c", or with "or" as `word`; repeated ones once."""
    *most, last = dict.fromkeys(names) or [""]
    return f"{', '.join(most)} {word} {last}" if most else last


def shown_unit(unit: str) -> tuple[str, float]:
    """Return the unit in which figures of a unit are shown, and the factor from it."""
    return UNITS.get(unit, (unit, 1.0))


def score(value: float) -> str:
    """Return four decimals: one of 10 000 test images counts; or as many as show three digits."""
    size = abs(value)
    if size == 0 or 0.00995 <= size < 100:
        return f"{value:.4f}"
    return f"{value:.3g}" if size < 1 else f"{value:.5g}"


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


def figure(value: float) -> str:
    """Return about three digits in whatever unit it is: small figures keep two of theirs, large ones take an exponent."""
    size = abs(value)
    if size >= LONG:
        return f"{value:.3g}"
    if size == 0 or size >= SMALL:
        return number(value)
    digits = 1 - math.floor(math.log10(size))
    return f"{value:.{digits}f}" if digits <= MOST_DECIMALS else f"{value:.1e}"


def two_digits(value: float) -> str:
    """Return a number with two digits, or more before the point."""
    if value <= 0:
        return "0"
    if value >= 9.95:
        return f"{value:.0f}"
    return figure(float(f"{value:.2g}")) if value < 0.1 else f"{value:.{1 if value >= 0.995 else 2}f}"


def duration_text(seconds: float) -> str:
    """Return a time with two digits, in the unit that people read: `0.62 s`, `8.1 s`, `31 s`, `12 min`, `3.5 h`."""
    for unit, size, most in (("s", 1.0, 2 * MINUTE), ("min", MINUTE, 2 * HOUR), ("h", HOUR, math.inf)):
        if seconds < most:
            return f"{two_digits(seconds / size).removesuffix('.0')} {unit}"
    return "never"


def duration_range(seconds: Iterable[float]) -> str:
    """Return the shortest and the longest of some times, the unit once where both have the same: `0.30 to 0.41 s`."""
    clamped = [max(0.0, value) for value in seconds]
    first, last = duration_text(min(clamped)), duration_text(max(clamped))
    if first == last:
        return first
    number, _, unit = first.partition(" ")
    return f"{number if last.endswith(f' {unit}') else first} to {last}"


def times(ratio: float) -> str:
    """Return how many times as much, without its sign: two digits, about 1 two decimals."""
    if math.isinf(ratio):
        return "∞"
    return f"{ratio:.2f}" if 0.9 <= ratio < 1.195 else two_digits(ratio)


def times_text(estimate: float, low: float, high: float) -> str:
    """Return `2.9x (1.5 to 4.8)`; without its range where that is of one value. A failed run has no ratio to one that is done."""
    if not 0 < estimate < math.inf:
        return MISSING
    return f"{times(estimate)}x" + (f" ({times(low)} to {times(high)})" if low != high else "")


def folded(text: str, width: int = FOLD) -> str:
    """Return a name on lines of at most `width`, broken after `.`, `:`, `_`, `,` and blanks only, never in a word."""
    lines = [""]
    for piece in re.findall(r"[^.:_, ]*[.:_, ]|[^.:_, ]+", text):
        if lines[-1] and len((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def wrapped(lines: Iterable[str], width: int | None) -> Iterator[str]:
    """Yield lines of at most `width` columns, broken at blanks, what follows two columns further in; None: as they are.

    A command at the end of a line that is too long has lines of its own, which a shell takes as they are.
    """
    for line in lines:
        if width is None or len(line) <= width or "\x1b" in line or not line.strip():  # with colours it is laid out already
            yield line
            continue
        indent = line[: len(line) - len(line.lstrip())]
        text, command = split_command(line)
        if text and command:
            yield from wrapped([text, f"{indent}  {command}"], width)
            continue
        more = " \\" if command else ""
        if more and any(" " in quoted for quoted in QUOTED.findall(line)):  # a quoted blank is no place to break at
            yield line
            continue
        most = max(width, 40) - len(more)
        *parts, last = textwrap.wrap(line, most, subsequent_indent=f"{indent}  ", break_long_words=False, break_on_hyphens=False)
        yield from (f"{part}{more}" for part in parts)
        yield last
