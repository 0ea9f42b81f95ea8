"""The runs of the plan: they are the denominator, so none is left out.

In which environment they ran: what all share once, and what differs by itself. And the fault matrix that may lie beside them.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tuneoff.base.format import ESTIMATED, MISSING, counted, listed
from tuneoff.base.identity import canonical_json
from tuneoff.experiment.metric_catalogue import Metric
from tuneoff.judge.answers.answer import Answers
from tuneoff.judge.comparison.environments import recorded_facts
from tuneoff.judge.fault_results import TITLES, WORST, FaultResult, read_fault_file
from tuneoff.judge.results import ABSENT, Results, Run
from tuneoff.record.flag_meanings import FLAGS, SERIOUS, marked
from tuneoff.tell.report.tables import FigureCell, amount_text

STATUSES = {"done": "●", "failed": "✕", "timeout": "◷", "interrupted": "◐", "skipped": "–", "running": "◌", "planned": "○"}
FILE = "faults.json"  # what `tuneoff faults --json` wrote, beside the plan


class FlagText(NamedTuple):
    """A flag of a run: its name, with a sign where it is serious, and what it means."""

    text: str
    is_serious: bool
    meaning: str


def run_flags(run: Run) -> list[FlagText]:
    """Return a run's flags, the serious ones first."""
    names = [(text, text.removeprefix("! ")) for text in marked(run.flags)]
    return [FlagText(text, name in SERIOUS, FLAGS.get(name, "")) for text, name in names]


def run_cell(run: Run, column: Metric) -> FigureCell:
    """Return the value of a run that is done itself."""
    value = run.metric(column.name) if run.status == "done" else None
    if value is None or value.value is None:
        return FigureCell(MISSING, reason=ABSENT if value is None else value.reason_if_null or "")
    return FigureCell(amount_text(value.value, value.unit, column), mark=ESTIMATED if value.kind == "estimated" else "")


class FaultCell(NamedTuple):
    """What a framework's run came to under a fault, and why."""

    text: str
    is_serious: bool
    reason: str


class FaultTable(NamedTuple):
    """The outcomes in one setting, a row per fault and a column per framework."""

    title: str
    frameworks: tuple[str, ...]
    rows: tuple[tuple[str, tuple[FaultCell, ...]], ...]


def fault_tables(folder: Path) -> list[FaultTable]:
    """Return a table per setting, nothing where the folder has no fault matrix.

    Raises:
        ResultsError: the file is damaged.
    """
    path = folder / FILE
    runs = read_fault_file(path).runs if os.path.lexists(path) else []
    faults = dict.fromkeys(run.fault for run in runs)
    frameworks = tuple(dict.fromkeys(run.adapter for run in runs))
    by_cell = {(run.setting, run.fault, run.adapter): run for run in runs}
    return [
        FaultTable(
            title=TITLES.get(setting, setting),
            frameworks=frameworks,
            rows=tuple((fault, tuple(_cell(by_cell.get((setting, fault, name))) for name in frameworks)) for fault in faults),
        )
        for setting in dict.fromkeys(run.setting for run in runs)
    ]


def _cell(run: FaultResult | None) -> FaultCell:
    if run is None or run.outcome is None:
        return FaultCell(MISSING, False, "not run, or no such part")
    return FaultCell(run.outcome, run.outcome in WORST, run.reason)


Row = tuple[str, tuple[str, ...]]


class Facts(NamedTuple):
    """A list of names, each with its values."""

    title: str
    rows: tuple[Row, ...]


def environment_facts(results: Results, answers: Answers) -> tuple[list[Facts], list[Facts]]:
    """Return what all runs share, and what differs between them.

    Shared are the machine, with the number of runs beside a value that differs; of each adapter its framework's version and
    classes; the packages with one version. Those of several versions differ, with the entries of their runs, also packages that
    only an environment's list of all has.
    """
    labels = {run.run_id: run.label for run in results.plan.runs}
    named: set[str] = set()
    machine: dict[str, Counter[str]] = defaultdict(Counter)  # runs by value
    packages: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))  # entries of the runs, by version
    for record in results.selected.values():
        for name, text in recorded_facts(record.environment).items():
            machine[name][text] += 1
        stored = (record.environment.get(name) for name in ("distributions", "versions"))
        every, versions = (part if isinstance(part, Mapping) else {} for part in stored)
        named.update(map(str, versions))
        for name, version in {**every, **versions}.items():
            if version is not None:
                packages[str(name)][str(version)].append(labels.get(record.run_id, record.run_id))
    frameworks: dict[str, dict[str, None]] = {}
    for group in answers.groups:
        for run in group.unskipped:
            if run.record is not None and run.record.versions:
                versions = run.record.versions
                name = " ".join(str(versions[key]) for key in ("framework", "framework_version") if versions.get(key))
                parts = [(key, value) for key, value in versions.items() if not key.startswith("framework") and value]
                rest = [f"{key} {value if isinstance(value, str) else canonical_json(value)}" for key, value in parts]
                frameworks.setdefault(group.label, {})["; ".join(filter(None, (name, *rest)))] = None
    same, differing = list[Row](), list[Row]()
    for name, by_version in sorted(packages.items()):
        texts = [f"{version} in {counted(len(of), 'run')} of {listed(of)}" for version, of in by_version.items()]
        if len(by_version) > 1:
            differing.append((name, tuple(texts)))
        elif name in named:
            same.append((name, tuple(by_version)))
    of_machine = [
        (name, tuple(counts if len(counts) == 1 else (f"{text} ({counted(count, 'run')})" for text, count in counts.items())))
        for name, counts in machine.items()
    ]
    shared = [
        Facts(title="Machine", rows=tuple(of_machine)),
        Facts(title="Frameworks", rows=tuple((label, tuple(texts)) for label, texts in frameworks.items())),
        Facts(title="Packages", rows=tuple(same)),
    ]
    return shared, [Facts(title="Packages that differ between runs", rows=tuple(differing))] if differing else []
