"""The tables with a row per framework: medians over seeds, kinds marked, what is missing with its reason."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tuneoff.answers.model import Answers, Group, RunRef, Scope
from tuneoff.answers.phrases import scope_text
from tuneoff.answers.results import Results
from tuneoff.metrics.values import MetricValue
from tuneoff.page import view
from tuneoff.page.columns import ENERGY_AND_COST, FOOTPRINT, QUALITY_AND_TIME, Column
from tuneoff.page.words import amount, percent
from tuneoff.records.model import RunRecord
from tuneoff.report.figures import ESTIMATED, MISSING, shown_unit
from tuneoff.report.summary import SummaryRow, summary_rows
from tuneoff.words import counted

RUN_STATUSES = ("done", "failed", "timeout", "interrupted", "skipped", "planned")
OLDER = "this record has no such metric: it is older"


@dataclass(frozen=True, slots=True)
class Entry:
    """A group with the records of its runs, and its row of the terminal's tables (None where it has no run)."""

    number: int
    group: Group
    records: tuple[tuple[RunRef, RunRecord | None], ...]
    row: SummaryRow | None

    @property
    def anchor(self) -> str:
        return f"group-{self.number}"

    @property
    def done(self) -> list[RunRecord]:
        return [record for ref, record in self.records if record is not None and ref.status == "done"]


Cells = Callable[[Entry], tuple[view.Cell, ...]]


def entries(results: Results, answers: Answers) -> list[Entry]:
    """Return the groups with their records, in the order of the answers."""
    planned = {run.run_id: run for run in results.planned}
    found = []
    for number, group in enumerate(answers.groups, 1):
        records = tuple((ref, results.standing.get(ref.run_id)) for ref in group.runs)
        runs = [planned[ref.run_id] for ref in group.runs if ref.run_id in planned]
        rows = summary_rows([record for _, record in records if record is not None], runs) if runs else []
        row = replace(rows[0], label=group.label, same_as=group.same_as) if rows else None
        found.append(Entry(number=number, group=group, records=records, row=row))
    return found


def figure_tables(found: Sequence[Entry]) -> list[view.FigureTable]:
    """Return the three tables: quality and time, energy and cost, what went wrong."""
    return [
        _figures("quality-time", "Quality and time", found, QUALITY_AND_TIME),
        _figures("energy-cost", "Energy, CO2e, cost and waste", found, ENERGY_AND_COST),
        _reliability(found),
    ]


def _figures(name: str, caption: str, found: Sequence[Entry], columns: Sequence[Column]) -> view.FigureTable:
    return view.FigureTable(
        name=name,
        caption=caption,
        headings=tuple(heading(column, found) for column in columns),
        scopes=tuple(_scoped(found, lambda entry: tuple(spread_cell(entry.done, column) for column in columns))),
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
    counts = {name: sum(ref.status == name for ref, _ in entry.records) for name in RUN_STATUSES}
    others = [f"{count} {name}" for name, count in counts.items() if count and name != "done"]
    success, row = entry.group.success, entry.row
    trials = [None] * 4 if row is None or not row.statuses else _trials(row)
    return (
        view.Cell(text=f"{counts['done']} of {len(entry.records)}"),
        view.Cell(text=", ".join(others) or "none"),
        view.Cell(text=MISSING, reason="no run was tried")
        if success is None
        else view.Cell(text=percent(success.estimate), below=f"{100 * success.low:.0f}–{percent(success.high)}"),
        *(view.Cell(text=MISSING if count is None else str(count)) for count in trials),
        *(spread_cell(entry.done, column) for column in FOOTPRINT),
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


def heading(column: Column, found: Sequence[Entry]) -> view.Heading:
    """Return a column's heading with the unit of its figures, which for a score is its metric's name."""
    values = (record.metrics.get(column.metric) for entry in found for record in entry.done)
    units = dict.fromkeys(value.unit for value in values if value is not None)
    unit = column.shown or (shown_unit(next(iter(units)))[0] if len(units) == 1 else "objective" if units else "")
    return view.Heading(text=column.heading, unit=unit, title=f"{column.metric}: {column.title}")


def spread_cell(done: Sequence[RunRecord], column: Column) -> view.Cell:
    """Return the median over runs that are done, and below it least–greatest."""
    found = [value_of(record, column.metric) for record in done]
    there = [value for value in found if value.value is not None]
    if not there:
        return view.Cell(text=MISSING, reason=_reason(found))
    values = [float(value.value or 0.0) for value in there]
    texts = [shown(value, there[0].unit, column) for value in (statistics.median(values), min(values), max(values))]
    return view.Cell(
        text=texts[0],
        below=f"{texts[1]}–{texts[2]}" if len(values) > 1 else "",
        mark=ESTIMATED if any(value.kind == "estimated" for value in there) else "",
        reason=f"of {len(there)} of {counted(len(found), 'run')}" if len(there) < len(found) else "",
    )


def shown(value: float, unit: str, column: Column) -> str:
    """Return a figure of a column."""
    return amount(value, unit, column.shown or shown_unit(unit)[0])


def value_of(record: RunRecord, metric: str) -> MetricValue:
    """Return a run's metric; an older record may lack it."""
    return record.metrics.get(metric) or MetricValue(value=None, unit="", reason_if_null=OLDER)


def _reason(found: Sequence[MetricValue]) -> str:
    reasons = dict.fromkeys(value.reason_if_null or "" for value in found)
    return "; ".join(reasons) if reasons else "no run is done"
