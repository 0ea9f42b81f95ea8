"""What holds over the tasks of a file; in the file's order, for a rank is no verdict."""

from __future__ import annotations

from tuneoff.base.format import MISSING, figure
from tuneoff.judge.answers.across_texts import compared_by
from tuneoff.judge.answers.answer import AcrossTasks, OverTasks
from tuneoff.judge.stats.interval import Interval
from tuneoff.tell.page.verdicts import size_cell
from tuneoff.tell.report.figure_cell import FigureCell

LEAST_P = 0.001  # that is shown


def pairs_over_tasks(one: AcrossTasks) -> dict[tuple[str, str], OverTasks | None]:
    """Return the pairs that have a probability, a test, or both."""
    known = {(pair.one, pair.other): pair for pair in one.compared}
    return {names: known.get(names) for names in (*one.improvement, *known)}


def mean_difference(pair: OverTasks | None, one: AcrossTasks) -> FigureCell:
    """Return the mean of one against other; its bounds are those of the family."""
    return size_cell(pair.mean if pair is not None else None, compared_by(one))


def interval_cell(interval: Interval | None) -> FigureCell:
    """Return an estimate and, below it, its bounds."""
    if interval is None:
        return FigureCell(MISSING)
    return FigureCell(figure(interval.estimate), f"{figure(interval.low)} to {figure(interval.high)}")


def p_text(pair: OverTasks | None) -> str:
    """Return the p of a pair; it is never 0."""
    value = pair.p if pair is not None else None
    if value is None:
        return MISSING
    return f"<{LEAST_P}" if value < LEAST_P else f"{value:.3f}"
