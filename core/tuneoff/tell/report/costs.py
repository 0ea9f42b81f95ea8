"""The comparison's second table: energy, carbon, cost and waste, with the kind of every figure, as plain text."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuneoff.base.format import ESTIMATED, MISSING, figure, folded, shown_unit, wrapped
from tuneoff.experiment.metric import Metric
from tuneoff.experiment.metric_names import metric
from tuneoff.judge.estimates import Figure
from tuneoff.judge.summary import SummaryRow
from tuneoff.tell.report.accounting_sources import NO_CIRCUMSTANCES, Circumstances
from tuneoff.tell.report.cost_notes import cost_notes
from tuneoff.tell.report.table import WIDEST, adapter_cell, cell, median_cell, strategy_cell

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, slots=True)
class Layout:
    """How much stands side by side. `stacked`: ranges take two lines; `merged`: columns that share one, as medians alone."""

    stacked: bool = False
    merged: bool = False

    @property
    def groups(self) -> list[tuple[Metric, ...]]:
        return [tuple(map(metric, group)) for group in (MERGED if self.merged else [(name,) for name in COLUMNS])]


CORES = "energy.reserved_core_seconds"
MERGED = (  # metrics that share a column
    ("time.jct",),
    ("energy.trial",),
    ("energy.per_completed_trial",),
    ("energy.cpu_seconds", CORES),
    ("carbon.job",),
    ("cost.job",),
    ("waste.default.time", "waste.default.energy", "waste.default.cost"),
    ("slots.idle_share", "energy.idle_share"),
)
COLUMNS = tuple(name for group in MERGED for name in group)
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
    notes = cost_notes(rows, {name: metric(name).heading for name in COLUMNS}, circumstances)
    return "\n".join(line.rstrip() for line in (*text.getvalue().splitlines(), *wrapped(notes, width))) + "\n"


def costs_table(rows: Sequence[SummaryRow], layout: Layout) -> Table:
    """Return the table: medians, lowest–highest of the runs that are done below them, `~` before what is estimated."""
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


def _heading(column: Metric, is_merged: bool) -> str:
    unit = column.shown or shown_unit(column.unit)[0]
    if not is_merged:
        heading = column.heading.replace("/", "/\n")
        return f"{heading}\n{unit}"
    return unit if column.name == CORES else f"{column.heading} {unit}"  # `core-s` says it all


def _cell(row: SummaryRow, group: Sequence[Metric], layout: Layout) -> str:
    if len(group) == 1:
        return _figure(row, group[0], stacked=layout.stacked)
    texts = [_figure(row, column, median_only=True) for column in group]
    return MISSING if set(texts) == {MISSING} else "\n".join(texts)


def _figure(row: SummaryRow, column: Metric, *, stacked: bool = False, median_only: bool = False) -> str:
    found: Figure | None = row.figures.get(column.name)
    if found is None or found.spread is None:
        return MISSING
    factor = shown_unit(column.unit)[1]
    mark = ESTIMATED if found.is_estimated else ""

    def write(value: float) -> str:
        return figure(value * factor)

    return median_cell(found.spread, write, mark=mark) if median_only else cell(found.spread, write, stacked=stacked, mark=mark)
