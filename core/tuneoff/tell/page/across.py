"""What holds over the tasks of a file; in the file's order, for a rank is no verdict."""

from __future__ import annotations

from tuneoff.base.format import MISSING, figure
from tuneoff.judge.answers.across_texts import compared_by
from tuneoff.judge.answers.answer import AcrossTasks, OverTasks
from tuneoff.judge.answers.phrases import signed
from tuneoff.judge.stats.interval import Interval
from tuneoff.tell.report.figure_cell import FigureCell

LEAST_P = 0.001  # that is shown


def pairs_over_tasks(one: AcrossTasks) -> dict[tuple[str, str], OverTasks | None]:
    """Return the pairs that have a probability, a test, or both."""
    known = {(pair.one, pair.other): pair for pair in one.compared}
    return {names: known.get(names) for names in (*one.improvement, *known)}


def mean_difference(pair: OverTasks | None, one: AcrossTasks) -> FigureCell:
    """Return the mean of one − other; its bounds are those of the family."""
    if pair is None or pair.mean is None:
        return FigureCell(MISSING)
    mean, question = pair.mean, compared_by(one)
    return FigureCell(signed(mean.estimate, question), f"{signed(mean.low, question)} to {signed(mean.high, question)}")


def interval_cell(interval: Interval | None) -> FigureCell:
    """Return an estimate and, below it, its bounds."""
    if interval is None:
        return FigureCell(MISSING)
    return FigureCell(figure(interval.estimate), f"{figure(interval.low)}–{figure(interval.high)}")


def p_text(pair: OverTasks | None) -> str:
    """Return the p of a pair; it is never 0."""
    value = pair.p if pair is not None else None
    return f"<{LEAST_P}" if value is not None and value < LEAST_P else decimals(value, 3)


def decimals(value: float | None, count: int) -> str:
    """Return a number with so many decimals."""
    return MISSING if value is None else f"{value:.{count}f}"
