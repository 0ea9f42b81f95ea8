"""From results, answers and plots to everything that the templates read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tuneoff.experiment.names import label_texts
from tuneoff.judge.answers.answer import Answers
from tuneoff.judge.notes import notes
from tuneoff.judge.results import Results
from tuneoff.judge.runs import Scope
from tuneoff.tell.page import environment
from tuneoff.tell.page.anchors import MOST_RUNS, Places
from tuneoff.tell.page.answer import said, unjudged
from tuneoff.tell.page.basis import basis
from tuneoff.tell.page.frameworks import ENERGY_AND_COST, Entry, FrameworkTable, entries, framework_tables
from tuneoff.tell.page.texts import confidence
from tuneoff.tell.page.verdicts import glance, has_seeds
from tuneoff.tell.plots.drawing import Drawing
from tuneoff.tell.report.accounting_sources import Circumstances, circumstances
from tuneoff.tell.report.cost_notes import cost_notes


def page(results: Results, answers: Answers, plots: Sequence[Drawing], folder: Path) -> dict[str, Any]:
    """Return what the templates read of a results folder; `folder`: where the page will lie, for links to the runs' files."""
    found = entries(results, answers)
    measured_by = circumstances(results.folder, results.standing.values())
    same, differing = environment.packages(results)
    at_a_glance = glance(answers)
    banner = "" if at_a_glance else unjudged(answers)
    summary, more_summary = said(answers, banner)
    return {
        "results": results,
        "answers": answers,
        "places": Places(results, answers, folder),
        "facts": _facts(results, answers, found),
        "banner": banner,
        "summary": summary,
        "more_summary": more_summary,
        "glance": at_a_glance,
        "has_seeds": has_seeds(answers),
        "tables": _with_notes(framework_tables(found), found, measured_by),
        "entries": found,
        "by_scope": _by_scope(found),
        "plots": plots,
        "most_runs": MOST_RUNS,
        "labels": label_texts((run.label, run.spec.adapter) for run in results.planned),
        "executions": Counter(record.run_id for record in results.records),
        "environment": (*environment.machine(results), environment.frameworks(results, answers), same),
        "differing": [differing] if differing.rows else [],
        "basis": basis(results, answers, measured_by),
    }


def _by_scope(found: Sequence[Entry]) -> dict[Scope, list[Entry]]:
    scopes: dict[Scope, list[Entry]] = {}
    for entry in found:
        scopes.setdefault(entry.group.scope, []).append(entry)
    return scopes


def _facts(results: Results, answers: Answers, found: Sequence[Entry]) -> list[tuple[str, str]]:
    planned = {run.run_id for run in results.planned}
    done = sum(record.status == "done" for record in results.standing.values() if record.run_id in planned)
    skipped = sum(run.skip_reason is not None for run in results.planned)
    seeds = sorted({ref.seed for entry in found for ref in entry.group.runs})
    trials = sum(len(record.trials) for entry in found for run in entry.runs.own if (record := run.record) is not None)
    times = sorted(record.started_at for record in results.standing.values() if record.started_at)
    tasks = {entry.group.scope.task for entry in found if entry.group.scope.task}
    facts = [
        ("runs done", f"{done} of {len(results.planned) - skipped}"),
        *([("skipped", str(skipped))] if skipped else []),
        ("adapters", str(len({entry.group.label for entry in found if not entry.group.replicate}))),
        ("seeds", str(len(seeds))),
        *([("tasks", str(len(tasks)))] if tasks else []),
        ("trials", f"{trials:,}".replace(",", "\u202f")),
        ("confidence", confidence(answers.confidence)),
    ]
    return [*facts, ("begun", f"{times[0][:16].replace('T', ' ')} UTC")] if times else facts


def _with_notes(tables: Sequence[FrameworkTable], found: Sequence[Entry], measured_by: Circumstances) -> list[FrameworkTable]:
    rows = [entry.row for entry in found]
    headings = {column.name: column.heading for column in ENERGY_AND_COST}
    own = (tuple(notes(rows)), tuple(cost_notes(rows, headings, measured_by)) if any(row.runs_done for row in rows) else (), ())
    return [replace(table, notes=lines) for table, lines in zip(tables, own, strict=True)]
