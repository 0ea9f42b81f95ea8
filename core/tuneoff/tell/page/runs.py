"""The table of all runs of the plan: it is the denominator, so none is left out."""

from __future__ import annotations

from collections import Counter

from tuneoff.experiment.names import emulated_label, label_texts, strategy_text, variant_text
from tuneoff.experiment.plan import PlannedRun
from tuneoff.judge.results import Results
from tuneoff.record.run_record import RunRecord
from tuneoff.tell.page import view
from tuneoff.tell.page.anchors import MOST_RUNS, Places
from tuneoff.tell.page.symbols import STATUSES, status


def run_rows(results: Results, places: Places) -> list[view.RunRow]:
    """Return a row per planned run, in the file's order, with the execution that stands for it."""
    labels = label_texts((run.label, run.spec.adapter) for run in results.planned)
    executions = Counter(record.run_id for record in results.records)
    return [
        _row(run, labels[run.label], results.standing.get(run.run_id), executions[run.run_id], places)
        for run in results.planned[:MOST_RUNS]
    ]


def status_counts(results: Results) -> list[tuple[view.Status, int]]:
    """Return how many planned runs came to what, those of no run left out."""
    counts = Counter(run_status(run, results.standing.get(run.run_id)) for run in results.planned)
    return [(status(name), counts[name]) for name in (*STATUSES, *sorted(set(counts) - set(STATUSES))) if counts[name]]


def run_status(run: PlannedRun, record: RunRecord | None) -> str:
    """Return what a planned run came to."""
    if run.skip_reason is not None:
        return "skipped"
    return "planned" if record is None else record.status


def _row(run: PlannedRun, label: str, record: RunRecord | None, executions: int, places: Places) -> view.RunRow:
    spec = run.spec
    emulated = run.emulated or (record is not None and record.emulated)
    name = run_status(run, record)
    reason = run.skip_reason or (record.reason if record is not None else None) or ""
    flags = dict.fromkeys(flag.name for flag in record.flags) if record is not None else {}
    if record is not None and record.continues is not None:
        flags["continued"] = None
    return view.RunRow(
        run_id=run.run_id,
        adapter=emulated_label(label, spec) if emulated else label,
        sampler=strategy_text(spec.experiment),
        variant=variant_text(spec.experiment.variant),
        seed=spec.seed,
        status=status(name),
        reason="not run yet" if name == "planned" else "" if reason == name else reason,
        flags=tuple(flags),
        file=view.Link(text=record.execution_id, href=places.file(record)) if record is not None else view.Link(text=""),
        executions=executions,
        group=places.group_of(run.run_id),
    )
