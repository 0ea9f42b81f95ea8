"""The table of figures that `run` and `compare` end with: a row per framework, and as many columns as fit the terminal."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tuneoff.base.format import ESTIMATED, MISSING, counted, figure, folded, number, score, seconds, shown_unit, wrapped
from tuneoff.experiment.metric import STEPS, Metric
from tuneoff.experiment.metric_catalogue import metric
from tuneoff.experiment.names import platform_text
from tuneoff.judge.summary_rows import COLUMNS, Figure, SummaryRow, notes
from tuneoff.tell.report.cost_notes import NO_CIRCUMSTANCES, Circumstances, cost_notes

if TYPE_CHECKING:
    from rich.table import Table

FAILED = "failed"  # in place of a median that failed runs reach: they are worse than any that is done
LEAST_MILLISECONDS = 5.0  # shown as 0.01 s
WIDEST = 1000  # columns
LEAST_COLUMNS = 3  # of figures, however narrow the terminal


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


def render(rows: Sequence[SummaryRow], width: int | None = None, circumstances: Circumstances = NO_CIRCUMSTANCES) -> str:
    """Return the table and its notes as text without colours or escape codes.

    `width`: columns of the terminal; None: no terminal, as wide as it comes. The most important figures are shown, as many
    as fit; all are on the page and in the export. The table is never cut: at worst it is wider than the terminal.
    Units are the same in all tables. The rows are in the file's order and in no other, which is no ranking.
    """
    from rich.console import Console

    text = io.StringIO()
    console = Console(file=text, width=WIDEST, color_system=None, force_terminal=False, highlight=False)
    columns = [*map(metric, COLUMNS)]
    while width is not None and len(columns) > LEAST_COLUMNS and console.measure(_table(rows, columns)).maximum > width:
        columns.pop()
    console.print(_table(rows, columns))
    below = notes(rows)
    if any(row.runs_done for row in rows):
        below += cost_notes(rows, {column.name: column.heading for column in columns}, circumstances)
    return "\n".join(line.rstrip() for line in (*text.getvalue().splitlines(), *wrapped(below, width))) + "\n"


def _table(rows: Sequence[SummaryRow], columns: Sequence[Metric]) -> Table:
    """Return the table: medians, lowest–highest of the runs that are done below them, `~` before what is estimated."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    has_variants = any(row.variant for row in rows)
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    for heading in ("framework", *(["variant"] if has_variants else []), "sampler"):
        table.add_column(heading, no_wrap=True)
    for heading in (*(_heading(column, rows) for column in columns), "trials\ndone/failed\n/pruned", "runs\ndone/\nplan"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        names = (_adapter(row), *([folded(row.variant)] if has_variants else []), _strategy(row))
        if row.same_as is not None:
            cells = [f"= {row.same_as}", *[""] * (len(columns) + 1)]
        else:
            trials = f"{row.trials_completed}/{row.trials_failed}/{row.trials_pruned}" if row.statuses else MISSING
            cells = [*(_figure(row, column) for column in columns), trials, _runs(row)]
        table.add_row(*(Text(text) for text in (*names, *cells)))
    return table


def _heading(column: Metric, rows: Sequence[SummaryRow]) -> str:
    """Return a column's name with its unit, which for a score is its metric's name."""
    units = {row.figures[column.name].unit for row in rows if column.name in row.figures} - {""}
    unit = column.unit or (units.pop() if len(units) == 1 else "objective")
    return (
        f"{column.heading}\n{unit_of(unit, column)}".replace("_", "_\n").replace("w/o test", "\nw/o test").replace("/t", "/\nt")
    )


def _figure(row: SummaryRow, column: Metric) -> str:
    found = row.figures.get(column.name)
    if found is None:
        return MISSING
    is_part = column.name.removeprefix("time.") in STEPS
    if is_part and found.spread is not None and found.spread.median < row.clock_uncertainty:
        return f"<{seconds(row.clock_uncertainty)}"
    cell = figure_cell(found, column)
    mark = "" if cell.text == "failed" else cell.mark
    return f"{mark}{cell.text}" + (f"\n{cell.mark}{cell.below}" if cell.below else "")


def _adapter(row: SummaryRow) -> str:
    """Return the adapter's name, with its platform below it where it has another one."""
    has_platform = row.platform == "local" or f"@{platform_text(row.platform, row.emulated)}" in row.label
    return folded(row.label) + ("" if has_platform else f"\n{platform_text(row.platform, row.emulated)}")


def _strategy(row: SummaryRow) -> str:
    """Return the sampler and, below it, the pruner."""
    return folded(row.sampler) + (f"\n{folded(f'+ {row.pruner}')}" if row.pruner != "none" else "")


def _runs(row: SummaryRow) -> str:
    if row.skips and not row.statuses:
        return "skip"
    return f"{row.runs_done}/{row.runs_planned}" + (f"\n{row.runs_failed} failed" if row.runs_failed else "")
