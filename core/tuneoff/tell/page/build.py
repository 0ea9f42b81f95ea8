"""From results, answers and choice to everything that the templates read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tuneoff.base.format import counted, duration_text
from tuneoff.experiment.metric import Metric
from tuneoff.experiment.metric_names import metric
from tuneoff.experiment.names import label_texts, variant_text
from tuneoff.judge.answers.answer import Question
from tuneoff.judge.answers.anytime import curves
from tuneoff.judge.answers.judging import FEWEST_SEEDS
from tuneoff.judge.choice.choice import Choice, Setting
from tuneoff.judge.choice.choose import Answered, time_question
from tuneoff.judge.notes import notes
from tuneoff.judge.results import Results
from tuneoff.judge.runs import Scope
from tuneoff.tell.page import environment, verdicts
from tuneoff.tell.page.anchors import MOST_RUNS, Places
from tuneoff.tell.page.basis import basis
from tuneoff.tell.page.choice_table import column_groups
from tuneoff.tell.page.faults import fault_tables
from tuneoff.tell.page.frameworks import ENERGY_AND_COST, Entry, FrameworkTable, entries, framework_tables
from tuneoff.tell.page.runs import status_counts
from tuneoff.tell.plots.anytime import Panel, panels
from tuneoff.tell.plots.dots import shared_scale
from tuneoff.tell.plots.scale import Scale
from tuneoff.tell.plots.theme import styles
from tuneoff.tell.report.accounting_sources import Circumstances, circumstances
from tuneoff.tell.report.cost_notes import cost_notes

BESIDE = ("energy.per_completed_trial", "quality.test")  # columns beside those of time


def page(of: Answered, folder: Path) -> dict[str, Any]:
    """Return what the templates read of a results folder; `folder`: where the page will lie, for links to the runs' files."""
    results, answers, choice = of.results, of.answers, of.choice
    found = entries(results, answers)
    measured_by = circumstances(results.folder, results.standing.values())
    same, differing = environment.packages(results)
    main = choice.settings[0] if choice.settings else None
    time = time_question(answers)
    drawn, left_out = _anytime(results, main)
    return {
        "results": results,
        "answers": answers,
        "choice": choice,
        "main": main,
        "others": choice.settings[1:],
        "time": time,
        "asked": _asked(answers.questions, time),
        "axes": {setting.name: _axes(setting, answers.questions) for setting in choice.settings},
        "beside": [metric(name) for name in BESIDE],
        "by_group": {(entry.group.label, entry.group.scope): entry for entry in found},
        "places": Places(results, folder),
        "facts": _facts(results, found, choice),
        "status_counts": status_counts(results),
        "across_notes": list(dict.fromkeys(line for one in answers.across for line in one.texts)),
        "unjudged": verdicts.unjudged(answers),
        "tables": _with_notes(framework_tables(found), found, measured_by),
        "by_scope": _by_scope(found),
        "styles": styles((group.label, group.replicate, group.emulated) for group in answers.groups),
        "panels": drawn,
        "panels_left_out": left_out,
        "faults": fault_tables(results.folder),
        "most_runs": MOST_RUNS,
        "has_variants": any(variant_text(run.spec.experiment.variant) for run in results.planned),
        "labels": label_texts((run.label, run.spec.adapter) for run in results.planned),
        "executions": Counter(record.run_id for record in results.records),
        "environment": (*environment.machine(results), environment.frameworks(results, answers), same),
        "differing": [differing] if differing.rows else [],
        "basis": basis(results, answers, measured_by),
    }


def _asked(questions: Sequence[Question], time: Question | None) -> list[tuple[Question, Metric]]:
    """Return the questions whose values the dots may show with their metrics, the one on time first."""
    return [(one, metric(one.metric)) for one in sorted(questions, key=lambda question: question is not time)]


def _axes(setting: Setting, questions: Iterable[Question]) -> dict[str, Scale]:
    groups = column_groups(setting)
    found = {question.name: shared_scale(groups, question) for question in questions}
    return {name: axis for name, axis in found.items() if axis is not None}


def _anytime(results: Results, main: Setting | None) -> tuple[list[Panel], int]:
    """Return the panels of the main setting, where any of its frameworks has as many runs as a verdict needs."""
    enough = main is not None and any(
        len(column.group.runs) >= FEWEST_SEEDS for row in main.rows for column in row.columns.values()
    )
    if main is None or not enough:
        return [], 0
    return panels(curves(results), {row.label: row.name for row in main.rows}, [scope.text for scope in main.scopes])


def _by_scope(found: Sequence[Entry]) -> dict[Scope, list[Entry]]:
    scopes: dict[Scope, list[Entry]] = {}
    for entry in found:
        scopes.setdefault(entry.group.scope, []).append(entry)
    return scopes


def _facts(results: Results, found: Sequence[Entry], choice: Choice) -> list[str]:
    """Return what was run, in a few words each."""
    planned = [run for run in results.planned if run.skip_reason is None]
    done = sum((record := results.standing.get(run.run_id)) is not None and record.status == "done" for run in planned)
    rows = choice.settings[0].rows if choice.settings else ()
    frameworks = sum(not row.is_floor for row in rows)
    lengths = [column.trial_seconds for row in rows for column in row.columns.values() if column.trial_seconds is not None]
    tasks = {entry.group.scope.task for entry in found if entry.group.scope.task}
    trials = _range(run.spec.experiment.budget.trials for run in planned)
    workers = _range(run.spec.experiment.workers.count for run in planned)
    days = sorted(record.started_at[:10] for record in results.standing.values() if record.started_at)
    return [
        counted(frameworks, "framework"),
        *([counted(len(tasks), "task")] if tasks else []),
        counted(len({run.spec.seed for run in planned}), "seed"),
        *([f"{trials} trials" + (f" of {_lengths(lengths)}" if lengths else "")] if trials else []),
        *([f"{workers} workers"] if workers else []),
        f"{done} of {counted(len(planned), 'run')} done",
        *days[:1],
    ]


def _range(values: Iterable[int | None]) -> str:
    known = sorted({value for value in values if value is not None})
    return "" if not known else str(known[0]) if len(known) == 1 else f"{known[0]} to {known[-1]}"


def _lengths(seconds: Sequence[float]) -> str:
    low, high = duration_text(min(seconds)), duration_text(max(seconds))
    return low if low == high else f"{low} to {high}"


def _with_notes(tables: Sequence[FrameworkTable], found: Sequence[Entry], measured_by: Circumstances) -> list[FrameworkTable]:
    rows = [entry.row for entry in found]
    headings = {column.name: column.heading for column in ENERGY_AND_COST}
    cost = tuple(cost_notes(rows, headings, measured_by)) if any(row.runs_done for row in rows) else ()
    own = {"quality-time": tuple(notes(rows)), "energy-cost": cost}
    return [replace(table, notes=own.get(table.name, ())) for table in tables]
