"""A metric over the seeds of a group as a cell: the same digits, units and marks in the terminal and on the page."""

from __future__ import annotations

import math
from typing import NamedTuple

from tuneoff.base.format import ESTIMATED, MISSING, counted, figure, number, score, shown_unit
from tuneoff.experiment.metric import Metric
from tuneoff.judge.estimates import Figure

FAILED = "failed"  # in place of a median that failed runs reach: they are worse than any that is done
LEAST_MILLISECONDS = 5.0  # shown as 0.01 s


class FigureCell(NamedTuple):
    """A figure: its text, what stands below it, `~` where it is estimated, and why it is missing."""

    text: str
    below: str = ""
    mark: str = ""
    reason: str = ""


def figure_cell(found: Figure, column: Metric) -> FigureCell:
    """Return the median over the seeds, and below it lowest–highest of the runs that are done."""
    spread = found.spread
    if spread is None:
        return FigureCell(MISSING, reason="; ".join(found.reasons) or "no run is done")
    low, high = (amount_text(value, found.unit, column) for value in (spread.low, spread.high))
    lacking = sum(found.reasons.values())
    return FigureCell(
        text=FAILED if math.isinf(spread.median) else amount_text(spread.median, found.unit, column),
        below=f"{low}–{high}" if low != high else low if spread.failed else "",
        mark=ESTIMATED if found.is_estimated else "",
        reason=f"of {spread.n} of {counted(spread.n + lacking, 'run')}" if lacking else "",
    )


def amount_text(value: float, unit: str, column: Metric) -> str:
    """Return a value that is in `unit` as a figure in the column's: scores keep four decimals, seconds two."""
    shown = unit_of(unit, column)
    if unit == "ms" and shown == "s":
        return "<0.01" if 0 < value < LEAST_MILLISECONDS else number(value / 1000)
    if "_" in unit:  # the name of a metric, as `test_accuracy`
        return score(value)
    return figure(value * (1.0 if unit == shown else shown_unit(unit)[1]))


def unit_of(unit: str, column: Metric) -> str:
    """Return the unit in which a column shows values that are in `unit`."""
    return column.shown or shown_unit(unit)[0]
