"""The tables with a row per framework: by job time, and medians over seeds, kinds marked, what is missing with its reason."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tuneoff.base.format import MISSING, duration_range, two_digits
from tuneoff.experiment.metric_catalogue import Metric, metric
from tuneoff.judge.choice.added import Added
from tuneoff.judge.choice.choice import Row, ScopeColumn, Setting, failures, ratio_text
from tuneoff.judge.groups import Group
from tuneoff.judge.metrics import ADDED, ENERGY_AND_COST, FOOTPRINT, INSIDE, QUALITY_AND_TIME
from tuneoff.judge.stats.location import Interval
from tuneoff.run.run_ends import STATUSES
from tuneoff.tell.page.texts import MARKS, percent
from tuneoff.tell.report.notes import Circumstances, cost_notes, notes
from tuneoff.tell.report.tables import SIGNS, FigureCell, unit_of

MOST_REFERENCES = 30  # rows, of which each has its ratio to each other one on the page
LEGEND = {outcome: (*MARKS[outcome], words) for outcome, (_, words) in SIGNS.items()}  # symbol, CSS class and words, on time
SHADES = (1.25, 2.0, 4.0, 10.0)  # from these ratios on, either way, a cell is darker


class ColumnHead(NamedTuple):
    """A column: its short name, its unit, and what it is."""

    text: str
    unit: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkTable:
    """A table with a row per framework. Heads beside those of its columns are those of `run_cells`."""

    name: str
    caption: str
    heads: tuple[ColumnHead, ...]
    columns: tuple[Metric, ...]  # the last ones of its heads
    notes: tuple[str, ...] = ()


def framework_tables(groups: Sequence[Group], measured_by: Circumstances) -> Iterator[FrameworkTable]:
    """Yield the tables: quality and time, energy and cost, what adds to a trial, inside trials if they tell, what went wrong."""
    inside = tuple(dict.fromkeys(name for group in groups for name in group.recorded(*INSIDE)))
    headings = {name: metric(name).heading for name in ENERGY_AND_COST}
    below = {
        "quality-time": notes(groups),
        "energy-cost": cost_notes(groups, headings, measured_by) if any(group.done for group in groups) else [],
    }
    of_runs = (  # as `run_cells` has them
        ColumnHead("done", "of plan", "runs that are done, of those that were planned"),
        ColumnHead("not done", title="runs by status"),
        ColumnHead("success", "Wilson", "share of tried runs that are done, with its interval"),
        ColumnHead("trials", "completed", "of all runs that were executed"),
        ColumnHead("pruned", "trials"),
        ColumnHead("failed", "trials", "failed or timed out"),
        ColumnHead("cancelled", "trials", "ended with their run, or by its budget"),
    )
    tables: tuple[tuple[str, str, Sequence[str], tuple[ColumnHead, ...]], ...] = (
        ("quality-time", "Quality and time", QUALITY_AND_TIME, ()),
        ("energy-cost", "Energy, CO2e, cost and waste", ENERGY_AND_COST, ()),
        ("added", "Where the time that is added to each trial comes from", ADDED, ()),
        *([("inside", "Inside trials: items per second, and phases as shares of busy time", inside, ())] if inside else []),
        ("reliability", "Failures and footprint", FOOTPRINT, of_runs),
    )
    for name, caption, names, first in tables:
        columns, heads = tuple(replace(metric(column), name=column) for column in names), list(first)
        for column in columns:  # with the unit of its figures, which for a score is its metric's name
            estimates = (group.estimate(column.name) for group in groups if not group.twins)
            units = dict.fromkeys(estimate.unit for estimate in estimates if estimate.present)
            unit = column.table_unit or (unit_of(next(iter(units)), column) if len(units) == 1 else "objective" if units else "")
            text = column.heading or column.name.rpartition(".")[2].replace("_", " ")
            heads.append(ColumnHead(text, unit, f"{column.name}: {column.title}"))
        notes_below = tuple(below.get(name, ()))
        yield FrameworkTable(name=name, caption=caption, heads=tuple(heads), columns=columns, notes=notes_below)


def run_cells(group: Group) -> tuple[FigureCell, ...]:
    """Return what became of its runs and trials, as `framework_tables` heads it."""
    counts = {name: sum(run.status == name for run in group.runs) for name in STATUSES}
    others = [f"{count} {name}" for name, count in counts.items() if count and name != "done"]
    success, ended = group.success, group.counts
    trials = (ended["completed"], ended["pruned"], ended["failed"] + ended["timed_out"], ended["cancelled"])
    return (
        FigureCell(f"{counts['done']} of {len(group.runs)}"),
        FigureCell(", ".join(others) or "none"),
        FigureCell(MISSING, reason="no run was tried")
        if success is None
        else FigureCell(percent(success.estimate), f"{100 * success.low:.0f}–{percent(success.high)}"),
        *(FigureCell(str(count) if group.executed else MISSING) for count in trials),
    )


class RatioCell(NamedTuple):
    """A ratio as the page shows it. `shade`: from -4 (much faster) to 4 (much slower); `order`: what it is sorted by."""

    text: str
    below: str
    sign: str
    css: str
    words: str
    shade: int
    order: float | None


NO_RATIO = RatioCell(MISSING, "", "", "", "no common seed, or runs failed", 0, None)
ITSELF = RatioCell("1x", "", "", "", "the reference", 0, 1.0)


def ratio_cell(row: Row, scope: str, reference: str | None) -> RatioCell:
    """Return the ratio of a row's job time to the reference's in a column."""
    column = row.columns.get(scope)
    if column is None or reference is None:
        return NO_RATIO
    if row.label == reference:
        return ITSELF
    ratio = column.ratios.get(reference)
    if ratio is None:
        return NO_RATIO
    text, _, rest = ratio_text(ratio).partition(" (")
    size = sum(max(ratio.estimate, 1 / ratio.estimate if ratio.estimate else math.inf) >= least for least in SHADES)
    order = ratio.estimate if math.isfinite(ratio.estimate) else None
    return RatioCell(text, rest.removesuffix(")"), *LEGEND[ratio.outcome], size if ratio.estimate >= 1 else -size, order)


def ratio_cells(row: Row, scope: str, setting: Setting) -> list[RatioCell]:
    """Return its ratio to each row, in their order: what a reader may choose; nothing where there are too many rows."""
    if len(setting.rows) > MOST_REFERENCES:
        return []
    return [ratio_cell(row, scope, other.label) for other in setting.rows]


def added_cell(interval: Interval | None, *, in_ms: bool = False) -> FigureCell:
    """Return what a framework adds, with its interval below."""
    if interval is None:
        return FigureCell(MISSING, reason="no run has the figure, or most failed")
    is_known = interval.n > 1 and math.isfinite(interval.low) and math.isfinite(interval.high)
    below = _range((interval.low, interval.high), in_ms=in_ms) if is_known else ""
    return FigureCell(_range([interval.estimate], in_ms=in_ms), below)


def report_cell(of: Added) -> FigureCell:
    """Return how many reports a trial makes, and what each adds."""
    cell = added_cell(of.per_report, in_ms=True)
    if of.reports is None or cell.text == MISSING:
        return cell if of.reports != 0 else FigureCell("0")
    return cell._replace(text=f"{of.reports:.3g} × {cell.text}")


def added_range(intervals: Iterable[Interval | None], *, in_ms: bool = False) -> str:
    """Return what a framework adds, from the least to the most of its columns."""
    estimates = [interval.estimate for interval in intervals if interval is not None]
    return _range(estimates, in_ms=in_ms) if estimates else MISSING


def _range(seconds: Sequence[float], *, in_ms: bool) -> str:
    if not in_ms:
        return duration_range(seconds)
    ends = dict.fromkeys(two_digits(1000 * end) for end in (min(seconds), max(seconds)))
    return f"{' to '.join(ends)} ms"


def job_cell(row: Row) -> FigureCell:
    """Return what a framework adds to a job above the baseline; of the baseline, and without one, all that it takes itself."""
    of = row.first.added
    if of.per_job is not None or of.own_per_job is None:
        return added_cell(of.per_job)
    return added_cell(of.own_per_job)._replace(below="baseline" if row.is_floor else "no baseline")


def job_range(row: Row) -> str:
    """Return the same, from the least to the most of its columns."""
    all_added = [column.added for column in row.columns.values()]
    above = [of.per_job for of in all_added]
    return added_range(above) if any(above) else f"{added_range(of.own_per_job for of in all_added)} (no baseline)"


def failed(columns: Iterable[ScopeColumn]) -> str:
    """Return how many of the tried runs failed: `1 of 10`."""
    return "{} of {}".format(*failures(columns))


def signs_used(setting: Setting) -> list[tuple[str, str, str]]:
    """Return symbol, CSS class and words of the outcomes that the table has."""
    outcomes = {ratio.outcome for row in setting.rows for column in row.columns.values() for ratio in column.ratios.values()}
    return [sign for outcome, sign in LEGEND.items() if outcome in outcomes]
