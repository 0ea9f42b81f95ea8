"""The runs of the plan: they are the denominator, so none is left out."""

from __future__ import annotations

from collections import Counter

from tuneoff.experiment.names import emulated_label
from tuneoff.experiment.plan import PlannedRun
from tuneoff.judge.results import Results
from tuneoff.record.run_record import RunRecord

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


def run_flags(record: RunRecord | None) -> str:
    """Return the names of a run's flags."""
    if record is None:
        return ""
    continued = ["continued"] if record.continues is not None else []
    return ", ".join(dict.fromkeys([*(flag.name for flag in record.flags), *continued]))


def run_label(run: PlannedRun, record: RunRecord | None, label: str) -> str:
    """Return the framework's label, which says where something stood in for its platform."""
    return emulated_label(label, run.spec) if run.emulated or (record is not None and record.emulated) else label
