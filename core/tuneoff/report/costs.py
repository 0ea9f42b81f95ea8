"""The comparison's second table: energy, carbon, cost and waste, with the kind of every figure, as plain text."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuneoff.report.circumstances import NO_CIRCUMSTANCES, Circumstances
from tuneoff.report.cost_notes import cost_notes
from tuneoff.report.figures import ESTIMATED, MISSING, cell, figure, folded, shown_unit, wrapped
from tuneoff.report.summary import Figure, SummaryRow
from tuneoff.report.table import WIDEST, adapter_cell, strategy_cell

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, slots=True)
class Column:
    """A metric's column; `heading` may have several lines; `unit`: the metric's own."""

    heading: str
    metric: str
    unit: str
    shown: str = ""  # in place of the unit that its figures are shown in


JCT = Column("JCT", "time.jct", "ms")
TWH = Column("TWH", "energy.trial", "kWh")
JOB = Column("job/\ntrial", "energy.per_completed_trial", "J")
CPU = Column("CPU", "energy.cpu_seconds", "s")
CORES = Column("cores", "energy.reserved_core_seconds", "s", "core-s")
CO2E = Column("CO2e", "carbon.job", "g")
OC = Column("OC", "cost.job", "USD")
WTT = Column("WTT", "waste.default.time", "ms")
WTE = Column("WTE", "waste.default.energy", "kWh")
WTC = Column("WTC", "waste.default.cost", "USD")
IDLE = Column("idle", "slots.idle_share", "%")
WR = Column("WR", "energy.idle_share", "%")


@dataclass(frozen=True, slots=True)
class Layout:
    """How much stands side by side. `stacked`: ranges take two lines; `merged`: columns that share one, as medians alone."""

    stacked: bool = False
    merged: bool = False

    @property
    def groups(self) -> list[tuple[Column, ...]]:
        if not self.merged:
            return [(one,) for one in COLUMNS]
        return [(JCT,), (TWH,), (JOB,), (CPU, CORES), (CO2E,), (OC,), (WTT, WTE, WTC), (IDLE, WR)]


COLUMNS = (JCT, TWH, JOB, CPU, CORES, CO2E, OC, WTT, WTE, WTC, IDLE, WR)
LAYOUTS = (Layout(), Layout(stacked=True), Layout(stacked=True, merged=True))  # the widest first


def render_costs(rows: Sequence[SummaryRow], width: int | None = None, circumstances: Circumstances = NO_CIRCUMSTANCES) -> str:
    """Return the table and its notes as text, as `table.render` does; nothing where no run is done.

    Units and columns are the same in all tables. The rows are in the file's order and in no other: energies of different
    kinds, and waste under different pruners, are not to be ranked.
    """
    from rich.console import Console

    if not any(row.runs_done for row in rows):
        return ""
    text = io.StringIO()
    console = Console(file=text, width=WIDEST, color_system=None, force_terminal=False, highlight=False)
    for layout in LAYOUTS:
        table = costs_table(rows, layout)
        if width is None or console.measure(table).maximum <= width:
            break
    console.print(table)
    notes = cost_notes(rows, {column.metric: _name(column) for column in COLUMNS}, circumstances)
    return "\n".join(line.rstrip() for line in (*text.getvalue().splitlines(), *wrapped(notes, width))) + "\n"


def costs_table(rows: Sequence[SummaryRow], layout: Layout) -> Table:
    """Return the table: medians over the runs that are done, least–greatest below them, `~` before what is estimated."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    has_variants = any(row.variant for row in rows)
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    for heading in ("adapter", *(["variant"] if has_variants else []), "sampler"):
        table.add_column(heading, no_wrap=True)
    groups = layout.groups
    for group in groups:
        table.add_column("\n".join(_heading(column, len(group) > 1) for column in group), justify="right", no_wrap=True)
    for row in rows:
        names = (adapter_cell(row), *([folded(row.variant)] if has_variants else []), strategy_cell(row))
        if row.same_as is not None:
            cells = [f"= {row.same_as}", *[""] * (len(groups) - 1)]
        else:
            cells = [_cell(row, group, layout) for group in groups]
        table.add_row(*(Text(text) for text in (*names, *cells)))
    return table


def _heading(column: Column, is_merged: bool) -> str:
    unit = column.shown or shown_unit(column.unit)[0]
    if not is_merged:
        return f"{column.heading}\n{unit}"
    return unit if column is CORES else f"{_name(column)} {unit}"  # `core-s` says it all


def _name(column: Column) -> str:
    return column.heading.replace("\n", "")


def _cell(row: SummaryRow, group: Sequence[Column], layout: Layout) -> str:
    if len(group) == 1:
        return _figure(row, group[0], stacked=layout.stacked)
    texts = [_figure(row, column, median_only=True) for column in group]
    return MISSING if set(texts) == {MISSING} else "\n".join(texts)


def _figure(row: SummaryRow, column: Column, *, stacked: bool = False, median_only: bool = False) -> str:
    found: Figure | None = row.figures.get(column.metric)
    if found is None or found.spread is None:
        return MISSING
    factor = shown_unit(column.unit)[1]
    mark = ESTIMATED if found.is_estimated else ""
    if median_only:
        return mark + figure(found.spread.median * factor)
    return cell(found.spread, lambda value: figure(value * factor), stacked=stacked, mark=mark)
