"""The runs of the plan: they are the denominator, so none is left out."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from tuneoff.base.format import ESTIMATED, MISSING
from tuneoff.experiment.metric import Metric
from tuneoff.experiment.names import emulated_label
from tuneoff.experiment.plan import PlannedRun
from tuneoff.judge.answers.run_values import ABSENT
from tuneoff.judge.results import Results
from tuneoff.record.flag_meanings import FLAGS, SERIOUS, marked
from tuneoff.record.run_record import RunRecord
from tuneoff.tell.report.figures_table import FigureCell, amount_text

STATUSES = {"done": "●", "failed": "✕", "timeout": "◷", "interrupted": "◐", "skipped": "–", "planned": "○"}


def status_counts(results: Results) -> list[tuple[str, int]]:
    """Return how many planned runs came to what, those of no run left out."""
    counts = Counter(run_status(run, results.standing.get(run.run_id)) for run in results.planned)
    return [(name, counts[name]) for name in (*STATUSES, *sorted(set(counts) - set(STATUSES))) if counts[name]]


def run_status(run: PlannedRun, record: RunRecord | None) -> str:
    """Return what a planned run came to."""
    if run.skip_reason is not None:
        return "skipped"
    return "planned" if record is None else record.status


def run_reason(run: PlannedRun, record: RunRecord | None) -> str:
    """Return why a run is not done; "" where its status says it."""
    if run.skip_reason is None and record is None:
        return "not run yet"
    reason = run.skip_reason or (record.reason if record is not None else None) or ""
    return "" if reason == run_status(run, record) else reason


class ShownFlag(NamedTuple):
    """A flag of a run: its name, with a sign where it is serious, and what it means."""

    text: str
    is_serious: bool
    meaning: str


def run_flags(record: RunRecord | None) -> list[ShownFlag]:
    """Return a run's flags, the serious ones first."""
    if record is None:
        return []
    continued = ["continued"] if record.continues is not None else []
    shown = marked([*(flag.name for flag in record.flags), *continued])
    names = [(text, text.removeprefix("! ")) for text in shown]
    return [ShownFlag(text, name in SERIOUS, FLAGS.get(name, "")) for text, name in names]


def run_label(run: PlannedRun, record: RunRecord | None, label: str) -> str:
    """Return the framework's label, which says where something stood in for its platform."""
    return emulated_label(label, run.spec) if run.emulated or (record is not None and record.emulated) else label


def run_cell(record: RunRecord | None, column: Metric) -> FigureCell:
    """Return the value of a run that is done."""
    value = record.metrics.get(column.name) if record is not None and record.status == "done" else None
    if value is None or value.value is None:
        return FigureCell(MISSING, reason=ABSENT if value is None else value.reason_if_null or "")
    return FigureCell(amount_text(value.value, value.unit, column), mark=ESTIMATED if value.kind == "estimated" else "")
