"""The tables with a row per framework: medians over seeds, kinds marked, what is missing with its reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tuneoff.base.format import MISSING
from tuneoff.experiment.metric import Metric
from tuneoff.experiment.metric_names import metric
from tuneoff.judge.answers.answer import Answers, EstimatedGroup
from tuneoff.judge.estimates import figure
from tuneoff.judge.results import Results
from tuneoff.judge.runs import Group, grouped
from tuneoff.judge.summary_rows import SummaryRow, summary_row
from tuneoff.record.run_record import RunRecord
from tuneoff.tell.page.texts import percent
from tuneoff.tell.report.figure_cell import FigureCell, figure_cell, unit_of

RUN_STATUSES = ("done", "failed", "timeout", "interrupted", "skipped", "planned")
QUALITY_AND_TIME = (
    *map(metric, ("quality.test", "quality.validation", "time.jct_without_test", "time.jct", "time.deploy", "time.setup")),
    *map(
        metric, ("time.trial", "time.result_collection", "time.test", "time.undeploy", "overhead.per_trial", "slots.idle_share")
    ),
)
ENERGY_AND_COST = (
    *map(metric, ("energy.trial", "energy.per_completed_trial", "energy.cpu_seconds", "energy.reserved_core_seconds")),
    *map(metric, ("carbon.job", "cost.job", "cost.per_completed_trial")),
    *map(metric, ("waste.default.time", "waste.default.energy", "waste.default.cost", "energy.idle_share")),
)
ADDED = tuple(
    metric(f"overhead.{name}") for name in ("per_trial", "process_start", "between", "dispatch", "report", "exit", "vacant")
)
FOOTPRINT = (metric("time.preparation"), metric("memory.tree_peak_rss"))


class ColumnHead(NamedTuple):
    """A column: its short name, its unit, and what it is."""

    text: str
    unit: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A group with its estimates, its runs, and its row of the terminal's tables."""

    group: EstimatedGroup
    runs: Group
    row: SummaryRow

    @property
    def done(self) -> list[RunRecord]:
        return list(self.runs.done.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkTable:
    """A table with a row per framework."""

    name: str
    caption: str
    heads: tuple[ColumnHead, ...]
    cells: Callable[[Entry], tuple[FigureCell, ...]]
    notes: tuple[str, ...] = ()


def entries(results: Results, answers: Answers) -> list[Entry]:
    """Return the groups with their records, in the order of the answers."""
    by_name = {(group.label, group.scope): group for group in grouped(results)}
    found = []
    for group in answers.groups:
        runs = by_name[group.label, group.scope]
        found.append(Entry(group, runs, replace(summary_row(runs), same_as=group.same_as)))
    return found


def framework_tables(found: Sequence[Entry]) -> list[FrameworkTable]:
    """Return the tables: quality and time, energy and cost, what adds to a trial, what went wrong."""
    return [
        _figures("quality-time", "Quality and time", found, QUALITY_AND_TIME),
        _figures("energy-cost", "Energy, CO2e, cost and waste", found, ENERGY_AND_COST),
        _figures("added", "Where the time that is added to each trial comes from", found, ADDED),
        _reliability(found),
    ]


def _figures(name: str, caption: str, found: Sequence[Entry], columns: Sequence[Metric]) -> FrameworkTable:
    return FrameworkTable(
        name=name,
        caption=caption,
        heads=tuple(column_head(column, found) for column in columns),
        cells=lambda entry: tuple(spread_cell(entry.runs, column) for column in columns),
    )


def _reliability(found: Sequence[Entry]) -> FrameworkTable:
    heads = (
        ColumnHead("done", "of plan", "runs that are done, of those that were planned"),
        ColumnHead("not done", title="runs by what they came to"),
        ColumnHead("success", "Wilson", "share of tried runs that are done, with its interval"),
        ColumnHead("trials", "completed", "of all runs that were executed"),
        ColumnHead("pruned", "trials"),
        ColumnHead("failed", "trials", "failed or timed out"),
        ColumnHead("cancelled", "trials", "ended with their run, or by its budget"),
        *(column_head(column, found) for column in FOOTPRINT),
    )
    return FrameworkTable(name="reliability", caption="Failures and footprint", heads=heads, cells=_reliability_cells)


def _reliability_cells(entry: Entry) -> tuple[FigureCell, ...]:
    counts = {name: sum(run.ref.status == name for run in entry.runs.runs) for name in RUN_STATUSES}
    others = [f"{count} {name}" for name, count in counts.items() if count and name != "done"]
    success, row = entry.group.success, entry.row
    trials = (row.trials_completed, row.trials_pruned, row.trials_failed, row.trials_cancelled)
    return (
        FigureCell(f"{counts['done']} of {len(entry.runs.runs)}"),
        FigureCell(", ".join(others) or "none"),
        FigureCell(MISSING, reason="no run was tried")
        if success is None
        else FigureCell(percent(success.estimate), f"{100 * success.low:.0f}–{percent(success.high)}"),
        *(FigureCell(str(count) if row.statuses else MISSING) for count in trials),
        *(spread_cell(entry.runs, column) for column in FOOTPRINT),
    )


def column_head(column: Metric, found: Sequence[Entry]) -> ColumnHead:
    """Return a column's heading with the unit of its figures, which for a score is its metric's name."""
    values = (record.metrics.get(column.name) for entry in found for record in entry.done)
    units = dict.fromkeys(value.unit for value in values if value is not None)
    unit = column.shown or (unit_of(next(iter(units)), column) if len(units) == 1 else "objective" if units else "")
    return ColumnHead(column.heading or column.name.rpartition(".")[2].replace("_", " "), unit, f"{column.name}: {column.title}")


def spread_cell(group: Group, column: Metric) -> FigureCell:
    """Return the median over the seeds with its range, and how many runs failed."""
    found = figure(group, column.name)
    cell = figure_cell(found, column)
    failed = f"{found.spread.failed} failed" if found.spread is not None and found.spread.failed else ""
    return cell._replace(below=", ".join(filter(None, (cell.below, failed))))
