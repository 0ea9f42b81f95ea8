"""The runs behind each row of the tables per framework, seed by seed, with a link to each."""

from __future__ import annotations

from collections.abc import Sequence

from tuneoff.answers.model import RunRef
from tuneoff.answers.phrases import scope_text
from tuneoff.metrics.values import MetricValue
from tuneoff.page import view
from tuneoff.page.columns import ALL, Column
from tuneoff.page.frameworks import Entry, heading, shown, value_of
from tuneoff.page.marks import status
from tuneoff.page.places import MOST_RUNS, Places
from tuneoff.records.model import RunRecord
from tuneoff.report.figures import ESTIMATED, MISSING
from tuneoff.words import counted


def group_runs(found: Sequence[Entry], places: Places) -> list[view.GroupRuns]:
    """Return the runs behind each row of the tables."""
    left = MOST_RUNS
    result = []
    for entry in found:
        if entry.group.same_as:
            continue
        kept = entry.records[:left]
        left -= len(kept)
        columns = [column for column in ALL if any(column.metric in record.metrics for record in entry.done)]
        result.append(
            view.GroupRuns(
                anchor=entry.anchor,
                title=f"{entry.group.label}: {scope_text(entry.group.scope)}",
                about=counted(len(entry.records), "run"),
                headings=tuple(heading(column, [entry]) for column in columns),
                rows=tuple(_seed_row(ref, record, columns, places) for ref, record in kept),
                left_out=len(entry.records) - len(kept),
            )
        )
    return result


def _seed_row(ref: RunRef, record: RunRecord | None, columns: Sequence[Column], places: Places) -> view.SeedRow:
    return view.SeedRow(
        seed=ref.seed,
        href=places.run_link(ref),
        file=places.file(record) if record is not None else "",
        status=status(ref.status),
        cells=tuple(_value_cell(value_of(record, column.metric), column) for column in columns) if record is not None else (),
    )


def _value_cell(value: MetricValue, column: Column) -> view.Cell:
    if value.value is None:
        return view.Cell(text=MISSING, reason=value.reason_if_null or "")
    return view.Cell(text=shown(value.value, value.unit, column), mark=ESTIMATED if value.kind == "estimated" else "")
