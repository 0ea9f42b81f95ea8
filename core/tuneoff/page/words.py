"""Numbers, names and paths as the page writes them."""

from __future__ import annotations

import math
import os
from pathlib import Path
from urllib.parse import quote

from tuneoff.report.figures import MISSING, figure, score
from tuneoff.stats.interval import Interval

MINUS, INFINITY, TIMES = "−", "∞", "×"
ALLOWED = frozenset("\u00a0\u202f")  # blanks at which no line breaks: not printable, and harmless


def visible(text: str) -> str:
    """Return `text` with what a reader could not see, or what would turn its direction, as escapes: `\\x1b`, `\\u202e`."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in ALLOWED else _escape(one) for one in text)


def _escape(one: str) -> str:
    return one.encode("unicode_escape").decode()


def path_link(target: Path, folder: Path) -> str:
    """Return the relative, percent-encoded link from a page in `folder` to `target`; no text in it can be a scheme."""
    return quote(os.path.relpath(target, folder), safe="/", errors="surrogateescape")


def signed(value: float) -> str:
    """Return a difference with its sign."""
    if math.isinf(value):
        return INFINITY if value > 0 else MINUS + INFINITY
    text = precise(abs(value))
    return text if not text.strip("0.") else f"{MINUS if value < 0 else '+'}{text}"


def precise(value: float) -> str:
    """Return a small figure with three significant digits, any other as tables write it."""
    if value == 0 or value >= 1:
        return figure(value)
    return f"{value:.{min(6, 2 - math.floor(math.log10(value)))}f}" if value >= 1e-4 else f"{value:.1e}"


def factor(log_ratio: float) -> str:
    """Return how many times one figure is the other, given the logarithm of their ratio."""
    if log_ratio > 50:
        return f"{TIMES}{INFINITY}" if math.isinf(log_ratio) else f"{TIMES}{math.exp(50):.0e}"
    return f"{TIMES}{_ratio(math.exp(log_ratio))}"


def _ratio(value: float) -> str:
    return f"{value:.0f}" if value >= 99.5 else f"{value:.1f}" if value >= 9.95 else f"{value:.2f}"


def on_scale(value: float, scale: str) -> str:
    """Return a value on a question's scale: a signed difference, or a factor."""
    return factor(value) if scale == "ratio" else signed(value)


def bracketed(interval: Interval | None, scale: str) -> str:
    """Return the two bounds of an interval."""
    if interval is None:
        return MISSING
    return f"[{on_scale(interval.low, scale)}, {on_scale(interval.high, scale)}]"


def percent(value: float) -> str:
    """Return a share in percent."""
    return f"{100 * value:.0f}\u202f%"


def plain(value: float | None, unit: str = "") -> str:
    """Return a value by its unit: scores keep four decimals."""
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return signed(value)
    return score(value) if is_score(unit) else figure(value)


def is_score(unit: str) -> bool:
    """Tell whether a unit is that of a model's quality: the name of a metric, as `test_accuracy`."""
    return "_" in unit
