"""`python -m benchmarks.result_pages RESULTS ...`: write docs/results/NAME.html from each results folder of an experiment.

A page holds the question of its file, the answer in two sentences, one picture with its figures, the command, machine and date.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import ChoiceLoader, DictLoader

from tuneoff.base.commands import printed_as, split_command
from tuneoff.base.format import ESTIMATED, MISSING, counted, figure, listed, score
from tuneoff.cli.listing import experiments
from tuneoff.judge.answers.analysis_plan import frozen
from tuneoff.judge.answers.answer import Outcome, Question, Verdict
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.answers.judging import FEWEST_SEEDS, PairComparison
from tuneoff.judge.answers.phrases import difference_text, display_unit, floor_text, is_decided, signed
from tuneoff.judge.choice.choice import ENERGY, QUALITY, Choice, Row, ScopeColumn, declared_seeds
from tuneoff.judge.choice.choose import choose
from tuneoff.judge.choice.curve import ASK, FIGURES, LEVELS, RATE, UTILIZATION
from tuneoff.judge.choice.levels import AS_GOOD, ENOUGH
from tuneoff.judge.choice.sharing import FAIRNESS, JOB, SLOWDOWN
from tuneoff.judge.comparison.environments import recorded_facts
from tuneoff.judge.groups import Group
from tuneoff.judge.results import ABSENT, disturbance, read_results
from tuneoff.judge.stats.location import middle
from tuneoff.tell.page.report import Links, environment, page, render
from tuneoff.tell.page.texts import BETTER, sentence
from tuneoff.tell.plots.drawing import scale
from tuneoff.tell.plots.shares import drawn
from tuneoff.tell.report.tables import FAILED, FigureCell

FOLDER = Path(__file__).parents[1] / "docs" / "results"
MACHINE = ("CPU", "logical processors", "memory", "accelerators", "python")
MOST_SENTENCES = 2
COMMENT = re.compile(r"^(\w+): (.*?)(?=^\w+: |\Z)", re.MULTILINE | re.DOTALL)  # of a file: what it varies, what is enough
TEMPLATE = """\
{% extends "layout.html" %}
{% import "macros.html" as m with context %}
{% import "choice.html" as first with context %}
{% import "plots.html" as plots with context %}
{% block main %}
<section class="answer"><h1>{{ question }}</h1>
{% for line in sentences %}<p>{{ line }}</p>
{% endfor %}
{% if seeds < fewest %}<p>Descriptive: {{ seeds | counted("seed") }}; a verdict needs {{ fewest }}.</p>{% endif %}
</section>
{% if plot %}
<figure>{{ plots.curve(plot) }}
{% call m.region("Table: " ~ plot.title) %}
<table class="shares"><caption>{{ plot.title }}</caption>
<thead><tr><th scope="col">framework</th>{% for text in plot.columns %}<th scope="col">{{ text }}</th>{% endfor %}</tr></thead>
<tbody>{% for line in plot.lines %}
<tr><th scope="row">{{ line.name }}</th>{% for cell in line.cells %}{{ m.cell(cell) }}{% endfor %}</tr>
{% endfor %}</tbody></table>
{% endcall %}
</figure>
{% elif axis %}
<figure style="max-width:46rem">
{% call m.region("Dots: " ~ clause.text) %}
<table class="frameworks"><caption>A dot per run, a bar at the median</caption>
<thead><tr><th scope="col"></th>
<th scope="col" class="dots-head"><span class="head">{{ clause.text }}{{ ", " ~ unit if unit }}</span>{{ first.axis(axis) }}</th>
{% if clause.against %}<th scope="col">against {{ clause.against }}</th>{% endif %}</tr></thead>
{% for level, of_level in cells | groupby("level") | sort(attribute="1.0.place") %}
<tbody><tr class="scope"><th scope="rowgroup" colspan="3">{{ level }}</th></tr>
{% for cell in of_level %}
<tr><th scope="row"><span class="swatch" style="background:var(--{{ styles[cell.row.label].colour }})"></span>{{ cell.name }}</th>
<td class="dots"><span><b>{{ cell.median }}</b>{{ first.dots(cell.row, cell.column, of, axis) }}</span></td>
{% if clause.against %}{{ m.cell(cell.effect) }}{% endif %}</tr>
{% endfor %}</tbody>
{% endfor %}
</table>
{% endcall %}
</figure>
{% else %}
{{ first.table(main, true) }}
{% endif %}
<dl class="facts">
{% for name, value in about if value %}<div><dt>{{ name }}</dt><dd>{{ value | with_command }}</dd></div>
{% endfor %}
</dl>
{% endblock %}
"""
Key = Callable[[Row, Group], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """A figure that a question asks for, at each level: as it is, or `against` a level, by seed in the same framework.

    `levels`: the only ones of which it is told; none: all.
    """

    text: str
    metric: str
    against: str = ""
    levels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a question asks for. `level`: what the file varies; `name`: what is compared with itself over the levels.

    `lines`: texts in those lines of the report that answer it, which are told first. The first clause is drawn.
    """

    level: Key
    clauses: tuple[Clause, ...]
    name: Key = lambda row, group: row.name.partition(" (")[0]  # its framework, without the label beside it
    lines: tuple[str, ...] = ()


def _number(path: str, what: str) -> Key:
    return lambda row, group: counted(attrgetter(path)(group.spec.experiment), what)


def _amount(path: str, unit: str) -> Key:
    return lambda row, group: f"{attrgetter(path)(group.spec.experiment):g} {unit}"


def _storage(row: Row, group: Group) -> str:
    storage = group.spec.options.get("storage", "journal")
    kind = " ".join(value for value in storage.values() if isinstance(value, str)) if isinstance(storage, Mapping) else storage
    return f"{kind} again" if group.replicate else str(kind)


def _fault(row: Row, group: Group) -> str:
    options = group.spec.experiment.workload.options
    return listed(map(str, options["kinds"])) if options["rate"] else "no fault"


TIME, SCORE, HERE = "job time", "test score", "local workers"
ASKED: Mapping[str, Asked] = {
    "Faults": Asked(
        level=_fault,
        clauses=(
            Clause(text=TIME, metric=JOB, against="no fault"),
            Clause(text="trials without a result", metric="trials.failed"),
            Clause(text="wasted training", metric="waste.default.time"),
        ),
    ),
    "R-CPU": Asked(
        level=_amount("workers.cpus", LEVELS["cpus"][0]),
        clauses=(
            Clause(text=TIME, metric=JOB, against="1 vCPU"),
            Clause(text="time of a trial", metric="trial_execution.median", against="1 vCPU"),
        ),
        lines=(ENOUGH["cpus"],),
    ),
    "R-Copies": Asked(
        level=_number("copies", "job"),
        clauses=(Clause(text="time of the first job", metric=JOB, against="1 job"),),
        lines=(FIGURES[SLOWDOWN][0], FIGURES[FAIRNESS][0]),
    ),
    "R-Device": Asked(
        level=lambda row, group: f"{group.spec.experiment.workers.per_device} per device",
        clauses=(
            Clause(text=TIME, metric=JOB, against="1 per device"),
            Clause(text="energy of a trial", metric=ENERGY, against="1 per device"),
        ),
    ),
    "R-Hosts": Asked(
        level=lambda row, group: HERE if group.spec.platform == "local" else "agents on hosts",
        clauses=(
            Clause(text=TIME, metric=JOB, against=HERE),
            Clause(text="overhead of a trial", metric="overhead.per_trial", against=HERE),
        ),
    ),
    "R-MEM": Asked(
        level=_amount("workers.memory_mb", LEVELS["memory"][0]),
        clauses=(Clause(text=TIME, metric=JOB, against="1600 MB"),),
        lines=(ENOUGH["memory"],),
    ),
    "R-Workers": Asked(
        level=_number("workers.count", "worker"),
        clauses=(Clause(text="utilization", metric=UTILIZATION),),
        lines=("Utilization is below",),
    ),
    "Releases": Asked(
        level=lambda row, group: row.label,
        clauses=(Clause(text="time of an ask", metric=ASK),),
        name=_number("budget.trials", "trial"),
        lines=(" against ",),
    ),
    "S-Budget": Asked(
        level=_number("budget.trials", "trial"),
        clauses=(Clause(text=SCORE, metric=QUALITY, against="40 trials"),),
        lines=(ENOUGH["trials"],),
    ),
    "S-Pruner": Asked(
        level=lambda row, group: group.scope.pruner,
        clauses=(
            Clause(text="epochs trained, of the budget", metric="epochs.of_budget"),
            Clause(text=SCORE, metric=QUALITY, against="none"),
            Clause(text="time from a decision to the trial's end", metric="stop_latency.median", levels=("scripted",)),
        ),
    ),
    "S-Sampler": Asked(
        level=lambda row, group: group.scope.sampler,
        clauses=(
            Clause(text=SCORE, metric=QUALITY, against="random"),
            Clause(text=TIME, metric=JOB, against="random"),
        ),
    ),
    "S-Space": Asked(
        level=lambda row, group: group.scope.task,
        clauses=(
            Clause(text=SCORE, metric=QUALITY, against="two-floats"),
            Clause(text="time of an ask", metric=ASK, against="two-floats"),
        ),
    ),
    "Storage": Asked(
        level=_storage,
        clauses=(
            Clause(text="rate of trials", metric=RATE),
            Clause(text="CPU time of ask, report and tell of a trial", metric="storage.client_cpu"),
        ),
        name=_number("workers.count", "worker"),
    ),
    "Time-to-accuracy": Asked(
        level=lambda row, group: row.name,
        clauses=(
            Clause(text="job time to the goal, or to the end of the budget", metric=JOB),
            Clause(text="time from the first trial to the goal", metric="goal.seconds"),
        ),
        name=lambda row, group: group.scope.sampler,
        lines=("Shown at",),
    ),
}


class Cell(NamedTuple):
    """A clause's figure of a framework at a level. `place`: of the level; `verdict`: against the clause's, None: of none."""

    place: int
    level: str
    name: str
    row: Row
    column: ScopeColumn
    verdict: Verdict | None
    clause: Clause

    @property
    def median(self) -> str:
        """The median in words, and of how many of its runs it is where not of all."""
        estimate = self.column.group.estimate(self.clause.metric)
        if estimate.middle is None or math.isinf(estimate.middle):
            return FAILED if estimate.failed else MISSING
        unit, factor = display_unit(self.clause.metric, estimate.unit)
        number = (
            f"{estimate.middle:g}" if unit == "count" else figure(estimate.middle * factor) if unit else score(estimate.middle)
        )
        text = f"{number} {unit.replace('count', '')}".rstrip()
        runs = len(self.column.group.done)
        present = f" in {runs - self.lacking.total()} of {runs}" if self.lacking else ""
        return (ESTIMATED if estimate.is_estimated else "") + text + present

    @property
    def size(self) -> float | None:
        """What a clause tells of it: the median, or the difference; None where it has none, or runs failed."""
        if not self.clause.against:
            median = self.column.group.estimate(self.clause.metric).middle
            return median if median is not None and math.isfinite(median) else None
        if self.verdict is None or any(self.verdict.failures):
            return None
        if self.verdict.outcome is not Outcome.NOT_JUDGED and self.verdict.interval is not None:
            return self.verdict.interval.estimate
        differences = [row.difference for row in self.verdict.differences if row.difference is not None]
        return middle(differences) if differences else None

    @property
    def text(self) -> str:
        """The same in words."""
        if not self.clause.against:
            return self.median
        if self.verdict is not None and self.size is not None:
            return signed(self.size, self.verdict.question)
        return FAILED if self.verdict is not None and self.verdict.failures[0] else MISSING

    @property
    def lacking(self) -> Counter[str]:
        """Its runs that are done without the figure, by why; none where its kind never has it, as the baseline has no ask."""
        lacking = self.column.group.estimate(self.clause.metric).lacking
        return Counter({reason: count for reason, count in lacking.items() if reason != ABSENT})

    @property
    def effect(self) -> FigureCell:
        """What it is against the clause's level, and the verdict."""
        if self.verdict is None or self.verdict.outcome is Outcome.NOT_JUDGED:
            return FigureCell(self.text)
        text = self.text if any(self.verdict.failures) else difference_text(self.verdict.interval, self.verdict.question)
        return FigureCell(text, self.verdict.outcome.text)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.result_pages", description=__doc__)
    parser.add_argument("results", type=Path, nargs="+", help="results folders of files of the catalogue")
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder of the pages; default: docs/results")
    parser.add_argument("--note", default="", help="what a reader must know of the machine beside what is recorded")
    arguments = parser.parse_args()
    for folder in arguments.results:
        choice = choose(answers(read_results(folder)))
        path = arguments.output / f"{choice.name}.html"
        path.write_text(rendered(choice, arguments.note), encoding="utf-8")
        print(path)
    return 0


def rendered(choice: Choice, note: str = "") -> str:
    """Return the page of a results folder whose experiment is in the catalogue.

    Raises:
        UnknownNameError: it is not.
    """
    (entry,), *_ = experiments([choice.name])
    said = dict(COMMENT.findall(entry["text"]))
    values = page(choice, FOLDER)
    values["links"] = Links(replace(choice.answers.results, planned=()), FOLDER)  # the page has no table of runs
    results, main = choice.answers.results, choice.settings[0]
    records = list(results.selected.values())
    facts = dict.fromkeys(fact for record in records for fact in recorded_facts(record.environment).items())
    with printed_as({results.plan.path: choice.name}):
        command = results.plan.resume_command(Path("results")).partition(" --resume")[0]
    days = sorted({record.started_at[:10] for record in records if record.started_at})
    groups = choice.answers.groups
    floors = {
        verdict.scope.text: floor_text(verdict)
        for verdict in choice.answers.verdicts
        if verdict.question == values["time"] and verdict.noise_floor is not None
    }
    runs = disturbance(run for group in groups for run in group.unskipped)
    values |= {
        **_picture(choice),
        "question": entry["text"].splitlines()[0],
        "sentences": sentences(choice),
        "seeds": declared_seeds(row for setting in choice.settings for row in setting.rows if not row.excluded),
        "fewest": FEWEST_SEEDS,
        "main": main,
        "about": (
            *((head, " ".join(said.get(head, "").split())) for head in ("Varies", "Enough")),
            ("Command", command),
            ("Other programs", runs.text),
            ("Warnings", " ".join(f"{warning.short.removesuffix('.')}." for warning in choice.warnings if warning.short)),
            ("Noise floor of the job time", "; ".join(f"{scope}: {floor}" for scope, floor in floors.items())),
            (
                "Not run again",
                "; ".join(f"{group.label} {group.scope.text} is {group.same_as}" for group in groups if group.twins),
            ),
            ("Machine", "; ".join(f"{name} {value}" for name, value in facts if name in MACHINE)),
            ("Note", note),
            ("Date", " to ".join(dict.fromkeys((days[0], days[-1]))) if days else ""),
            ("tuneoff", listed({version for record in records if (version := _version(record.environment))})),
        ),
    }
    shipped = [loader for loader in (environment().loader,) if loader is not None]
    templates = environment().overlay(loader=ChoiceLoader([DictLoader({"result.html": TEMPLATE}), *shipped]))
    return render(values, template="result.html", templates=templates)


def _version(recorded: Mapping[str, Any]) -> str:
    state = recorded.get("git") or {}
    versions = recorded.get("versions") or {}
    return ", commit ".join(filter(None, (str(versions.get("tuneoff", "")), str(state.get("commit") or "")[:12])))


def _picture(choice: Choice) -> dict[str, Any]:
    """Return the curve of the first clause's metric where the report has one, else what its dots are drawn from."""
    asked = ASKED.get(choice.name)
    clause = asked.clauses[0] if asked is not None else None
    if clause is None:
        return {"plot": None, "axis": None}
    of_clause = cells(choice)[0]
    question = _question(choice, clause, of_clause[0].column.group)
    unit, factor = display_unit(clause.metric, question.unit)
    levels: dict[str, set[str]] = {}
    for cell in of_clause:
        levels.setdefault(cell.row.label, set()).add(cell.level)
    names = {label: of_label.pop() for label, of_label in levels.items() if len(of_label) == 1}  # where labels are what varies
    plots = [
        replace(
            plot,
            lines=tuple(replace(line, name=names.get(line.label, line.name.replace("_platform", ""))) for line in plot.lines),
        )
        for plot in drawn(choice.settings[0])
        if plot.curve.metric == clause.metric
    ]
    present = [value for cell in of_clause for value in cell.column.group.estimate(clause.metric).present]
    return {
        "plot": plots[-1] if plots else None,
        "axis": scale(factor * value for value in present),
        "clause": clause,
        "unit": unit.replace("count", ""),
        "cells": of_clause,
        "of": question,
    }


def sentences(choice: Choice) -> list[str]:
    """Return the answer in at most two sentences: lines of the report, of the same kind the last one first, and clauses."""
    asked = ASKED.get(choice.name)
    lines = [split_command(line)[0] for line in choice.lines]
    if asked is None:
        return lines[:MOST_SENTENCES]
    told = [line for text in asked.lines for line in reversed(lines) if text in line]
    if len(told) < MOST_SENTENCES:
        told += filter(None, (_told(clause, of) for clause, of in zip(asked.clauses, cells(choice), strict=True)))
    first, *more = told or lines
    return [sentence(text) for text in (first, "; ".join(text.removesuffix(".") for text in more)) if text]


def cells(choice: Choice) -> list[list[Cell]]:
    """Return the cells of each clause, in the order of the file; none of runs that stand for others, or that are not compared."""
    asked, plan = ASKED[choice.name], frozen(choice.answers.analysis)
    rows = [row for setting in choice.settings for row in setting.rows if not row.excluded]
    measured = {(row.label, scope): (row, column) for row in rows for scope, column in row.columns.items()}
    keys = [key for group in choice.answers.groups if (key := (group.label, group.scope.text)) in measured]
    bare = [
        (asked.level(row, column.group), asked.name(row, column.group), row, column)
        for row, column in (measured[key] for key in keys)
    ]
    levels = list(dict.fromkeys(level for level, *_ in bare))
    alpha = plan.alpha(sum(level != clause.against for clause in asked.clauses if clause.against for level, *_ in bare))
    by_clause = []
    for clause in asked.clauses:
        bases = {name: column.group for level, name, _, column in bare if level == clause.against}
        of_clause = []
        for level, name, row, column in bare:
            verdict = None
            if level != clause.against and name in bases:
                question = _question(choice, clause, bases[name])
                verdict = PairComparison(column.group, bases[name], question, alpha).verdict()
            of_clause.append(Cell(levels.index(level), level, name, row, column, verdict, clause))
        by_clause.append(sorted(of_clause, key=attrgetter("place")))
    return by_clause


def _question(choice: Choice, clause: Clause, group: Group) -> Question:
    return frozen(choice.answers.analysis).question(clause.text, clause.metric, group.spec.experiment)


def _told(clause: Clause, of_clause: Sequence[Cell]) -> str:
    """Return a clause over its levels, and how many runs have no figure; "" where it says nothing of any."""
    wanted = [cell for cell in of_clause if cell.level != clause.against and (not clause.levels or cell.level in clause.levels)]
    by_level: dict[str, list[Cell]] = {}
    for cell in wanted:
        if cell.text != MISSING or cell.lacking:
            by_level.setdefault(cell.level, []).append(cell)
    if not by_level:
        return ""
    levels = (f"{level} {', '.join(_of_level(of_level, each=len(by_level) == 1))}" for level, of_level in by_level.items())
    told = [cell for of_level in by_level.values() for cell in of_level]
    lacking = sum((cell.lacking for cell in told), Counter[str]())
    runs = counted(sum(len(cell.column.group.done) for cell in told), "run")
    without = f" ({lacking.total()} of {runs} have none: {listed(lacking)})" if lacking else ""
    verdicts = [cell.verdict for cell in wanted if cell.verdict is not None and clause.metric == QUALITY]
    better = f", {BETTER[verdicts[0].question.better]}" if verdicts else ""  # of a score, whose name does not tell
    return f"{clause.text}{f' against {clause.against}' if clause.against else ''}{better}: {'; '.join(levels)}{without}"


def _of_level(of_level: Sequence[Cell], *, each: bool) -> Iterator[str]:
    """Yield the lowest and the highest figure of a level, or `each`; who failed; and what is shown where it is judged."""
    ordered = sorted((cell for cell in of_level if cell.size is not None), key=lambda cell: cell.size or 0.0)
    names: dict[str, list[str]] = {}  # by figure, of all that tie
    for cell in ordered:
        if each or cell.text in (ordered[0].text, ordered[-1].text):
            names.setdefault(cell.text, []).append(cell.name)
    named = [f"{text} ({listed(names_of)})" for text, names_of in names.items()]
    if len({cell.text for cell in of_level}) == 1 and of_level[0].text != FAILED and not each:
        yield of_level[0].text
    elif named:
        yield (", " if each else " to ").join(named)
    judged = {cell.name: cell.verdict for cell in of_level if cell.verdict is not None and not any(cell.verdict.failures)}
    by_outcome = {
        "failed in": [cell.name for cell in of_level if cell.text == FAILED],
        "shown in": [name for name, verdict in judged.items() if is_decided(verdict)],
        "as good in": [name for name, verdict in judged.items() if verdict.outcome in AS_GOOD and not is_decided(verdict)],
        "not decided in": [name for name, verdict in judged.items() if verdict.outcome is Outcome.UNDECIDED],
    }
    yield from (f"{words} {listed(names)}" for words, names in by_outcome.items() if names)


if __name__ == "__main__":
    sys.exit(main())
