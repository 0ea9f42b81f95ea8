"""The runs behind each row of the tables per framework, seed by seed, with a link to each."""

from __future__ import annotations

from collections.abc import Sequence

from tuneoff.base.format import ESTIMATED, MISSING
from tuneoff.base.words import counted
from tuneoff.experiment.metric import Metric
from tuneoff.judge.answers.phrases import scope_text
from tuneoff.judge.answers.run_values import ABSENT
from tuneoff.judge.runs import Run
from tuneoff.record.metric_value import MetricValue
from tuneoff.tell.page import view
from tuneoff.tell.page.anchors import MOST_RUNS, Places
from tuneoff.tell.page.columns import ALL
from tuneoff.tell.page.frameworks import Entry, heading, shown
from tuneoff.tell.page.symbols import status


def group_runs(found: Sequence[Entry], places: Places) -> list[view.GroupRuns]:
    """Return the runs behind each row of the tables."""
    left = MOST_RUNS
    result = []
    for entry in found:
        if entry.group.same_as:
            continue
        kept = entry.runs.runs[:left]
        left -= len(kept)
        columns = [column for column in ALL if any(column.name in record.metrics for record in entry.done)]
        result.append(
            view.GroupRuns(
                anchor=entry.anchor,
                title=f"{entry.group.label}: {scope_text(entry.group.scope)}",
                about=counted(len(entry.runs.runs), "run"),
                headings=tuple(heading(column, [entry]) for column in columns),
                rows=tuple(_seed_row(run, columns, places) for run in kept),
                left_out=len(entry.runs.runs) - len(kept),
            )
        )
    return result


def _seed_row(run: Run, columns: Sequence[Metric], places: Places) -> view.SeedRow:
    ref, record = run.ref, run.record
    return view.SeedRow(
        seed=ref.seed,
        href=places.run_link(ref),
        file=places.file(record) if record is not None else "",
        status=status(ref.status),
        cells=tuple(_value_cell(run.metric(column.name), column) for column in columns) if record is not None else (),
    )


def _value_cell(value: MetricValue | None, column: Metric) -> view.Cell:
    if value is None or value.value is None:
        return view.Cell(text=MISSING, reason=ABSENT if value is None else value.reason_if_null or "")
    return view.Cell(text=shown(value.value, value.unit, column), mark=ESTIMATED if value.kind == "estimated" else "")
