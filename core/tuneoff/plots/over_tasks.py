"""What the plots over all tasks of a file share."""

from __future__ import annotations

import math

from tuneoff.answers.model import AcrossTasks
from tuneoff.plots.canvas import Sheet, letters
from tuneoff.plots.words import lines, value_text
from tuneoff.stats.interval import Interval
from tuneoff.words import counted


def title(one: AcrossTasks, sheet: Sheet) -> str:
    """Return the title of a panel, as wide as it."""
    return lines(scope_text(one), letters(sheet.panel_width), 1)


def scope_text(one: AcrossTasks) -> str:
    """Return what an answer is of: `quality, random, 12 tasks`."""
    return f"{one.question.name}, {one.scope.text}, {counted(len(one.tasks), 'task')}"


def head(one: AcrossTasks) -> tuple[str, str]:
    """Return the first cells of an answer's rows."""
    return one.question.name, one.scope.text


def bounds(interval: Interval) -> tuple[float, float, float]:
    """Return an interval's cells of a row."""
    return interval.estimate, interval.low, interval.high


def bound_text(value: float) -> str:
    """Return a bound of an interval as text."""
    return "no bound" if math.isinf(value) else value_text(value)
