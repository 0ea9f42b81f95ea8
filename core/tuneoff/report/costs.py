"""The comparison's second table: energy, carbon, cost and waste, with the kind of every figure, as plain text."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuneoff.report.circumstances import NO_CIRCUMSTANCES, Circumstances
from tuneoff.report.cost_notes import cost_notes
from tuneoff.report.figures import ESTIMATED, MISSING, cell, folded, number, readable_unit
from tuneoff.report.summary import Figure, SummaryRow
from tuneoff.report.table import WIDEST, adapter_cell, strategy_cell

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, slots=True)
class Column:
    """A metric's column; `heading` may have several lines."""

    heading: str
    metric: str
    unit: str = ""  # in place of the metric's own


JCT = Column("JCT", "time.jct")
TWH = Column("TWH", "energy.trial")
JOB = Column("job/\ntrial", "energy.per_completed_trial")
CPU = Column("CPU", "energy.cpu_seconds")
CORES = Column("cores", "energy.reserved_core_seconds", "core-s")
CO2E = Column("CO2e", "carbon.job")
OC = Column("OC", "cost.job")
WTT = Column("WTT", "waste.default.time")
WTE = Column("WTE", "waste.default.energy")
WTC = Column("WTC", "waste.default.cost")
IDLE = Column("idle", "slots.idle_share")
WR = Column("WR", "energy.idle_share")


@dataclass(frozen=True, slots=True)
class Layout:
    """How much stands side by side. `stacked`: ranges take two lines; `merged`: columns that share one, as medians alone."""

    stacked: bool = False
    merged: bool = False

    def groups(self, idle: tuple[Column, Column]) -> list[tuple[Column, ...]]:
        if not self.merged:
            return [(one,) for one in (JCT, TWH, JOB, CPU, CORES, CO2E, OC, WTT, WTE, WTC, *idle)]
        return [(JCT,), (TWH,), (JOB,), (CPU, CORES), (CO2E,), (OC,), (WTT, WTE, WTC), idle]


LAYOUTS = (Layout(), Layout(stacked=True), Layout(stacked=True, merged=True))  # the widest first


def render_costs(rows: Sequence[SummaryRow], width: int | None = None, circumstances: Circumstances = NO_CIRCUMSTANCES) -> str:
    """Return the table and its notes as text, as `table.render` does; nothing where no run is done.

    The rows are in the file's order and in no other: energies of different kinds, and waste under different pruners, are
    not to be ranked.
    """
    from rich.console import Console

    if not any(row.runs_done for row in rows):
        return ""
    text = io.StringIO()
    console = Console(file=text, width=WIDEST, color_system=None, force_terminal=False, highlight=False)
    units = {column.metric: unit_of(rows, column) for group in LAYOUTS[0].groups(idle_columns(rows)) for column in group}
    for layout in LAYOUTS:
        table = costs_table(rows, layout, units)
        if width is None or console.measure(table).maximum <= width:
            break
    console.print(table)
    headings = {column.metric: _name(column) for group in LAYOUTS[0].groups((IDLE, WR)) for column in group}
    for note in cost_notes(rows, headings, circumstances):
        console.print(note, markup=False, soft_wrap=True)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def costs_table(rows: Sequence[SummaryRow], layout: Layout, units: dict[str, tuple[str, float]]) -> Table:
    """Return the table: medians over the runs that are done, least–greatest below them, `~` before what is estimated."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    has_variants = any(row.variant for row in rows)
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    for heading in ("adapter", *(["variant"] if has_variants else []), "sampler"):
        table.add_column(heading, no_wrap=True)
    groups = layout.groups(idle_columns(rows))
    for group in groups:
        table.add_column("\n".join(_heading(column, units, len(group) > 1) for column in group), justify="right", no_wrap=True)
    for row in rows:
        names = (adapter_cell(row), *([folded(row.variant)] if has_variants else []), strategy_cell(row))
        if row.same_as is not None:
            cells = [f"= {row.same_as}", *[""] * (len(groups) - 1)]
        else:
            cells = [_cell(row, group, units, layout) for group in groups]
        table.add_row(*(Text(text) for text in (*names, *cells)))
    return table


def idle_columns(rows: Sequence[SummaryRow]) -> tuple[Column, Column]:
    """Return idle time and WR, the time first where the energy is estimated: a model does not see what idles."""
    is_model = any(row.figures[WR.metric].is_estimated for row in rows if WR.metric in row.figures)
    return (IDLE, WR) if is_model else (WR, IDLE)


def unit_of(rows: Sequence[SummaryRow], column: Column) -> tuple[str, float]:
    """Return the unit of a column and the factor from the metric's own, by the medians of all rows."""
    figures = [row.figures[column.metric] for row in rows if column.metric in row.figures]
    own = next((figure.unit for figure in figures if figure.unit), "")
    unit, factor = readable_unit(own, [figure.spread.median for figure in figures if figure.spread is not None])
    return column.unit or unit, factor


def _heading(column: Column, units: dict[str, tuple[str, float]], is_merged: bool) -> str:
    unit = units[column.metric][0]
    if not is_merged:
        return f"{column.heading}\n{unit}"
    return unit if column is CORES else f"{_name(column)} {unit}"  # `core-s` says it all


def _name(column: Column) -> str:
    return column.heading.replace("\n", "")


def _cell(row: SummaryRow, group: Sequence[Column], units: dict[str, tuple[str, float]], layout: Layout) -> str:
    if len(group) == 1:
        return _figure(row, group[0], units, stacked=layout.stacked)
    texts = [_figure(row, column, units, median_only=True) for column in group]
    return MISSING if set(texts) == {MISSING} else "\n".join(texts)


def _figure(
    row: SummaryRow,
    column: Column,
    units: dict[str, tuple[str, float]],
    *,
    stacked: bool = False,
    median_only: bool = False,
) -> str:
    figure: Figure | None = row.figures.get(column.metric)
    if figure is None or figure.spread is None:
        return MISSING
    factor = units[column.metric][1]
    mark = ESTIMATED if figure.is_estimated else ""
    if median_only:
        return mark + number(figure.spread.median * factor)
    return cell(figure.spread, lambda value: number(value * factor), stacked=stacked, mark=mark)
