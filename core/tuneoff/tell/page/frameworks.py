"""The tables with a row per framework: medians over seeds, kinds marked, what is missing with its reason."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tuneoff.base.format import ESTIMATED, MISSING, shown_unit
from tuneoff.base.words import counted
from tuneoff.experiment.metric import Metric
from tuneoff.judge.answers.answer import Answers, EstimatedGroup
from tuneoff.judge.answers.phrases import scope_text
from tuneoff.judge.estimates import figure
from tuneoff.judge.results import Results
from tuneoff.judge.runs import Group, Scope, grouped
from tuneoff.judge.summary import SummaryRow, summary_row
from tuneoff.record.run_record import RunRecord
from tuneoff.tell.page import view
from tuneoff.tell.page.columns import ENERGY_AND_COST, FOOTPRINT, QUALITY_AND_TIME
from tuneoff.tell.page.words import amount, percent
from tuneoff.tell.report.table import FAILED

RUN_STATUSES = ("done", "failed", "timeout", "interrupted", "skipped", "planned")


@dataclass(frozen=True, slots=True)
class Entry:
    """A group with its estimates, its runs, and its row of the terminal's tables."""

    number: int
    group: EstimatedGroup
    runs: Group
    row: SummaryRow

    @property
    def anchor(self) -> str:
        return f"group-{self.number}"

    @property
    def done(self) -> list[RunRecord]:
        return list(self.runs.done.values())


Cells = Callable[[Entry], tuple[view.Cell, ...]]


def entries(results: Results, answers: Answers) -> list[Entry]:
    """Return the groups with their records, in the order of the answers."""
    by_name = {(group.label, group.scope): group for group in grouped(results)}
    found = []
    for number, group in enumerate(answers.groups, 1):
        runs = by_name[group.label, group.scope]
        row = replace(summary_row(runs), same_as=group.same_as)
        found.append(Entry(number=number, group=group, runs=runs, row=row))
    return found


def figure_tables(found: Sequence[Entry]) -> list[view.FigureTable]:
    """Return the three tables: quality and time, energy and cost, what went wrong."""
    return [
        _figures("quality-time", "Quality and time", found, QUALITY_AND_TIME),
        _figures("energy-cost", "Energy, CO2e, cost and waste", found, ENERGY_AND_COST),
        _reliability(found),
    ]


def _figures(name: str, caption: str, found: Sequence[Entry], columns: Sequence[Metric]) -> view.FigureTable:
    return view.FigureTable(
        name=name,
        caption=caption,
        headings=tuple(heading(column, found) for column in columns),
        scopes=tuple(_scoped(found, lambda entry: tuple(spread_cell(entry.runs, column) for column in columns))),
    )


def _reliability(found: Sequence[Entry]) -> view.FigureTable:
    headings = (
        view.Heading(text="done", unit="of plan", title="runs that are done, of those that were planned"),
        view.Heading(text="not done", title="runs by what they came to"),
        view.Heading(text="success", unit="Wilson", title="share of tried runs that are done, with its interval"),
        view.Heading(text="trials", unit="completed", title="of all runs that were executed"),
        view.Heading(text="pruned", unit="trials"),
        view.Heading(text="failed", unit="trials", title="failed or timed out"),
        view.Heading(text="cancelled", unit="trials", title="ended with their run, or by its budget"),
        *(heading(column, found) for column in FOOTPRINT),
    )
    return view.FigureTable(
        name="reliability",
        caption="Failures and footprint",
        headings=headings,
        scopes=tuple(_scoped(found, _reliability_cells)),
    )


def _reliability_cells(entry: Entry) -> tuple[view.Cell, ...]:
    counts = {name: sum(run.ref.status == name for run in entry.runs.runs) for name in RUN_STATUSES}
    others = [f"{count} {name}" for name, count in counts.items() if count and name != "done"]
    success, row = entry.group.success, entry.row
    trials = _trials(row) if row.statuses else [None] * 4
    return (
        view.Cell(text=f"{counts['done']} of {len(entry.runs.runs)}"),
        view.Cell(text=", ".join(others) or "none"),
        view.Cell(text=MISSING, reason="no run was tried")
        if success is None
        else view.Cell(text=percent(success.estimate), below=f"{100 * success.low:.0f}–{percent(success.high)}"),
        *(view.Cell(text=MISSING if count is None else str(count)) for count in trials),
        *(spread_cell(entry.runs, column) for column in FOOTPRINT),
    )


def _trials(row: SummaryRow) -> list[int | None]:
    return [row.trials_completed, row.trials_pruned, row.trials_failed, row.trials_cancelled]


def _scoped(found: Sequence[Entry], cells: Cells) -> Iterator[view.Scoped]:
    scopes: dict[Scope, list[Entry]] = {}
    for entry in found:
        scopes.setdefault(entry.group.scope, []).append(entry)
    for scope, members in scopes.items():
        yield view.Scoped(scope=scope_text(scope), rows=tuple(_row(entry, cells) for entry in members))


def _row(entry: Entry, cells: Cells) -> view.FrameworkRow:
    return view.FrameworkRow(
        label=entry.group.label,
        anchor=entry.anchor,
        emulated=entry.group.emulated,
        same_as=entry.group.same_as or "",
        cells=() if entry.group.same_as else cells(entry),
    )


def heading(column: Metric, found: Sequence[Entry]) -> view.Heading:
    """Return a column's heading with the unit of its figures, which for a score is its metric's name."""
    values = (record.metrics.get(column.name) for entry in found for record in entry.done)
    units = dict.fromkeys(value.unit for value in values if value is not None)
    unit = column.shown or (shown_unit(next(iter(units)))[0] if len(units) == 1 else "objective" if units else "")
    return view.Heading(text=column.heading, unit=unit, title=f"{column.name}: {column.title}")


def spread_cell(group: Group, column: Metric) -> view.Cell:
    """Return the median over the seeds, and below it lowest–highest of the runs that are done, and how many failed."""
    found = figure(group, column.name)
    spread = found.spread
    if spread is None:
        return view.Cell(text=MISSING, reason="; ".join(found.reasons) or "no run is done")
    low, high = (shown(value, found.unit, column) for value in (spread.low, spread.high))
    below = [f"{low}–{high}" if low != high else low if spread.failed else "", f"{spread.failed} failed" if spread.failed else ""]
    lacking = sum(found.reasons.values())
    return view.Cell(
        text=FAILED if math.isinf(spread.median) else shown(spread.median, found.unit, column),
        below=", ".join(filter(None, below)),
        mark=ESTIMATED if found.is_estimated else "",
        reason=f"of {spread.n} of {counted(spread.n + lacking, 'run')}" if lacking else "",
    )


def shown(value: float, unit: str, column: Metric) -> str:
    """Return a figure of a column."""
    return amount(value, unit, column.shown or shown_unit(unit)[0])
