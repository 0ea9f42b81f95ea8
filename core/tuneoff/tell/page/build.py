"""From results, answers and plots to everything that the page shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tuneoff.judge.answers.answer import Answers
from tuneoff.judge.notes import notes
from tuneoff.judge.results import Results
from tuneoff.tell.page import environment, view
from tuneoff.tell.page.across import task_tables
from tuneoff.tell.page.anchors import Places
from tuneoff.tell.page.answer import said, unjudged
from tuneoff.tell.page.basis import basis
from tuneoff.tell.page.columns import ENERGY_AND_COST
from tuneoff.tell.page.frameworks import Entry, entries, figure_tables
from tuneoff.tell.page.runs import run_rows, status_counts
from tuneoff.tell.page.seeds import group_runs
from tuneoff.tell.page.verdicts import glance, question_tables
from tuneoff.tell.page.words import confidence, sentence
from tuneoff.tell.report.accounting_sources import Circumstances, circumstances
from tuneoff.tell.report.cost_notes import cost_notes


def page(results: Results, answers: Answers, plots: Sequence[view.Plot], folder: Path) -> view.Page:
    """Return the page of a results folder; `folder`: where it will lie, for links to the runs' files."""
    places = Places(results, answers, folder)
    found = entries(results, answers)
    measured_by = circumstances(results.folder, results.standing.values())
    same, differing = environment.packages(results)
    at_a_glance = glance(answers)
    banner = unjudged(answers) if at_a_glance is None else ""
    summary, more_summary = said(answers, banner)
    return view.Page(
        title=answers.name,
        facts=tuple(_facts(results, answers, found)),
        statuses=tuple(status_counts(results)),
        planned=len(results.planned),
        banner=banner,
        exploratory=tuple(sentence(text) for text in answers.exploratory),
        summary=summary,
        more_summary=more_summary,
        glance=at_a_glance,
        questions=tuple(question_tables(answers, places)),
        tasks=tuple(task_tables(answers)),
        tables=tuple(_with_notes(figure_tables(found), found, measured_by)),
        groups=tuple(group_runs(found, places)),
        plots=tuple(plots),
        runs=tuple(run_rows(results, places)),
        runs_left_out=max(0, len(results.planned) - len(places)),
        environment=(*environment.machine(results), environment.frameworks(results, answers), same),
        differing=(differing,) if differing.rows else (),
        basis=tuple(basis(results, answers, measured_by)),
        limits=answers.limits,
    )


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


def _with_notes(tables: Sequence[view.FigureTable], found: Sequence[Entry], measured_by: Circumstances) -> list[view.FigureTable]:
    rows = [entry.row for entry in found]
    headings = {column.name: column.heading for column in ENERGY_AND_COST}
    own = (tuple(notes(rows)), tuple(cost_notes(rows, headings, measured_by)) if any(row.runs_done for row in rows) else (), ())
    return [replace(table, notes=lines) for table, lines in zip(tables, own, strict=True)]
