"""The table of frameworks: each one's job time, how many times as long as the reference's that is, and what it adds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tuneoff.base.format import MISSING, duration_text
from tuneoff.judge.answers.answer import EstimatedGroup, Outcome
from tuneoff.judge.choice.amounts import ratio_text
from tuneoff.judge.choice.choice import Column, Ratio, Row, Setting, failures
from tuneoff.judge.stats.interval import Interval
from tuneoff.tell.page.verdicts import MARKS
from tuneoff.tell.report.figure_cell import FigureCell

MOST_REFERENCES = 30  # rows, of which each has its ratio to each other one on the page
_WORDS = {  # of an outcome on time
    Outcome.BETTER: "shown to be faster",
    Outcome.WORSE: "shown to be slower",
    Outcome.EQUIVALENT: "as fast, within the margin",
    Outcome.EQUIVALENT_THOUGH_DIFFERENT: "as fast, within the margin, though different",
    Outcome.UNDECIDED: Outcome.UNDECIDED.text,
    Outcome.NOT_JUDGED: "too few seeds to decide by itself",
}
SIGNS = {outcome: (*MARKS[outcome], words) for outcome, words in _WORDS.items()}  # symbol, CSS class and words
SHADES = (1.25, 2.0, 4.0, 10.0)  # from these ratios on, either way, a cell is darker


class RatioCell(NamedTuple):
    """A ratio as the page shows it. `shade`: from -4 (much faster) to 4 (much slower); `order`: what it is sorted by."""

    text: str
    below: str
    sign: str
    css: str
    words: str
    shade: int
    order: float | None


NO_RATIO = RatioCell(MISSING, "", "", "", "no seed that both have", 0, None)
ITSELF = RatioCell("1x", "", "", "", "the reference", 0, 1.0)


def ratio_cell(row: Row, scope: str, reference: str | None) -> RatioCell:
    """Return the ratio of a row's job time to the reference's in a column."""
    column = row.columns.get(scope)
    if column is None or reference is None:
        return NO_RATIO
    if row.label == reference:
        return ITSELF
    ratio = column.ratios.get(reference)
    return NO_RATIO if ratio is None else _told(ratio)


def ratio_cells(row: Row, scope: str, setting: Setting) -> list[RatioCell]:
    """Return its ratio to each row, in their order: what a reader may choose; nothing where there are too many rows."""
    if len(setting.rows) > MOST_REFERENCES:
        return []
    return [ratio_cell(row, scope, other.label) for other in setting.rows]


def rows_of(setting: Setting, *, emulated: bool) -> list[Row]:
    """Return the rows that are compared, or those whose platform something stood in for."""
    return [row for row in setting.rows if row.is_emulated is emulated]


def added_cell(interval: Interval | None) -> FigureCell:
    """Return what a framework adds, with its interval below."""
    if interval is None:
        return FigureCell(MISSING, reason="no run has the figure")
    is_known = interval.n > 1 and math.isfinite(interval.low) and math.isfinite(interval.high)
    return FigureCell(duration_text(max(0.0, interval.estimate)), _from_to(interval.low, interval.high) if is_known else "")


def added_range(intervals: Iterable[Interval | None]) -> str:
    """Return what a framework adds, from the least to the most of its columns."""
    found = [interval.estimate for interval in intervals if interval is not None]
    return _from_to(min(found), max(found)) if found else MISSING


def failed(columns: Iterable[Column]) -> str:
    """Return how many of the tried runs failed: `1 of 10`."""
    return "{} of {}".format(*failures(columns))


def signs_used(setting: Setting) -> list[tuple[str, str, str]]:
    """Return symbol, CSS class and words of the outcomes that the table has."""
    found = {ratio.outcome for row in setting.rows for column in row.columns.values() for ratio in column.ratios.values()}
    return [told for outcome, told in SIGNS.items() if outcome in found]


def has_intervals(setting: Setting) -> bool:
    """Whether ranges are the intervals of verdicts; else they are from the lowest to the highest seed."""
    return any(ratio.is_interval for row in setting.rows for column in row.columns.values() for ratio in column.ratios.values())


def column_groups(setting: Setting) -> Sequence[EstimatedGroup]:
    """Return the groups of the first column, which the dots are of."""
    scope = setting.scopes[0].text
    return [row.columns[scope].group for row in setting.rows if scope in row.columns]


def _told(ratio: Ratio) -> RatioCell:
    text, _, rest = ratio_text(ratio).partition(" (")
    size = sum(max(ratio.estimate, 1 / ratio.estimate if ratio.estimate else math.inf) >= least for least in SHADES)
    order = ratio.estimate if math.isfinite(ratio.estimate) else None
    return RatioCell(text, rest.removesuffix(")"), *SIGNS[ratio.outcome], size if ratio.estimate >= 1 else -size, order)


def _from_to(low: float, high: float) -> str:
    """Return a range of times, its unit once where both have the same."""
    first, last = (duration_text(max(0.0, value)) for value in (low, high))
    if first == last:
        return first
    number, _, unit = first.partition(" ")
    return f"{number if last.endswith(f' {unit}') else first} to {last}"
