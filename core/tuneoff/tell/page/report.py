"""`tuneoff report`: read a results folder once, answer, choose, gather what the templates read, and write one page.

In HTML everything that comes from outside is escaped, and nothing is loaded.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from tuneoff.base.commands import command, path_text, split_command
from tuneoff.base.files import make_folder
from tuneoff.base.format import MISSING, counted, duration_text, number, score
from tuneoff.base.identity import canonical_json
from tuneoff.base.layout import RECORD, REPORT
from tuneoff.errors import ResultsError
from tuneoff.experiment.metric_catalogue import metric
from tuneoff.experiment.names import strategy_text, variant_text
from tuneoff.judge.answers.across import compared_by
from tuneoff.judge.answers.answer import AcrossTasks, Answers, OverTasks, Question
from tuneoff.judge.answers.anytime import curves
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.answers.judging import FEWEST_SEEDS
from tuneoff.judge.answers.phrases import display_unit, scope_text
from tuneoff.judge.choice.choice import ENERGY, Choice, Setting
from tuneoff.judge.choice.choose import choose, time_question
from tuneoff.judge.results import Results, read_results
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import write_bytes
from tuneoff.tell.page import frameworks, runs, texts
from tuneoff.tell.page.frameworks import framework_tables
from tuneoff.tell.page.runs import STATUSES, Facts, environment_facts, fault_tables
from tuneoff.tell.page.texts import confidence, path_link, sentence, size_cell
from tuneoff.tell.plots import drawing, job_parts, shares
from tuneoff.tell.plots.anytime import Panel, panels
from tuneoff.tell.plots.drawing import Scale, scale, styles
from tuneoff.tell.report.notes import Circumstances, circumstances
from tuneoff.tell.report.tables import FigureCell, facts, figure_cell

MOST_RUNS = 4000  # in the table of runs; beyond, the page would be too large
APART = frozenset(("comparisons", "power", "carbon", "prices", "questions", "anchors"))  # shown otherwise, or too long
KEPT = 160  # characters of a value
PAGE = "report.html"
LEAST_P = 0.001  # that is shown
STYLE, SCRIPT, LIVE_SCRIPT = "report.css", "report.js", "live.js"
ALLOWED = frozenset("\u00a0\u202f")  # blanks at which no line breaks: not printable, and harmless


def write_report(results_folder: Path, output: Path | None = None, choice: Choice | None = None) -> Path:
    """Write report.html; return its path.

    `output`: the folder to write to; default: `report/` in the results folder. `choice`: what is said of it; None: not known yet.

    Raises:
        ResultsError: it is not a results folder, a file in it is damaged, or the report cannot be written.
    """
    folder = output or results_folder / REPORT
    text = render(page(choice or choose(answers(read_results(results_folder))), folder))
    try:
        make_folder(folder)
    except OSError as error:
        raise ResultsError(f"{folder} cannot be made: {error.strerror}; free space or choose another --output") from error
    path = folder / PAGE
    write_bytes(path, text.encode())
    return path


def page(choice: Choice, folder: Path) -> dict[str, Any]:
    """Return what the templates read of a results folder; `folder`: where the page will lie, for links to the runs' files."""
    answers, results = choice.answers, choice.answers.results
    measured_by = circumstances(results.folder, results.selected.values())
    environment, differing = environment_facts(results, answers)
    main = choice.settings[0] if choice.settings else None
    time = time_question(answers)
    questions = sorted(answers.questions, key=lambda question: question is not time)  # the one on time first
    drawn, left_out = list[Panel](), 0  # where any framework of the main setting has as many runs as a verdict needs
    columns = [(row, column) for row in (main.rows if main is not None else ()) for column in row.columns.values()]
    if main is not None and any(len(column.group.runs) >= FEWEST_SEEDS for _, column in columns):
        names = {row.label: row.name for row, _ in columns}
        drawn, left_out = panels(curves(results), names, [scope.text for scope in main.scopes])
    by_id = {run.run_id: (group, run) for group in answers.groups for run in group.runs}
    return {
        "name": choice.name,
        "results": results,
        "answers": answers,
        "choice": choice,
        "main": main,
        "others": choice.settings[1:],
        "time": time,
        "dot_questions": [(question, metric(question.metric)) for question in questions],  # whose values the dots may show
        "axes": {setting.name: _axes(setting, answers.questions) for setting in choice.settings},
        "beside": [metric(name) for name in (ENERGY, choice.quality)],  # columns beside those of time
        "links": Links(results, folder),
        "findings": command("explain", "docs/findings.md"),
        "facts": facts(choice),
        "runs": [by_id[run.run_id] for run in results.planned if run.run_id in by_id],
        "status_counts": [(name, answers.statuses[name]) for name in STATUSES if answers.statuses.get(name)],
        "across_notes": list(dict.fromkeys(line for across in answers.across for line in across.texts)),
        "unjudged": texts.unjudged(answers),
        "tables": list(framework_tables(answers.groups, measured_by)),
        "styles": styles((group.label, group.replicate, bool(group.excluded)) for group in answers.groups),
        "panels": drawn,
        "panels_left_out": left_out,
        "faults": fault_tables(results.folder),
        "most_runs": MOST_RUNS,
        "has_variants": any(variant_text(run.spec.experiment.variant) for run in results.planned),
        "executions": Counter(record.run_id for record in results.records),
        "environment": environment,
        "differing": differing,
        "basis": basis(results, answers, measured_by),
    }


def _axes(setting: Setting, questions: Iterable[Question]) -> dict[str, Scale]:
    scope = setting.scopes[0].text  # the first column, which the dots are of
    groups = [row.columns[scope].group for row in setting.rows if scope in row.columns]
    axes = {}
    for question in questions:
        _, factor = display_unit(question.metric, question.unit)
        axis = scale(factor * value for group in groups for value in group.estimate(question.metric).present)
        if axis is not None:
            axes[question.name] = axis
    return axes


def basis(results: Results, answers: Answers, circumstances: Circumstances) -> list[Facts]:
    """Return what the figures rest on."""
    plan = results.plan
    meters = circumstances.meters or ("no run has samples of a meter",)
    questions = tuple(
        f"{question.name}: {question.metric}, margin {question.margin_text or 'none'}" for question in answers.questions
    )
    family = f"for a family of {answers.family_size} comparisons, by Bonferroni"
    confidence_text = f"{confidence(answers.confidence)} {family}"
    return [
        Facts(title="Measured by", rows=(("meter", meters), ("charged by", circumstances.accounting or ("nothing",)))),
        Facts(title="Judged by", rows=(("questions", questions or ("none",)), ("confidence", (confidence_text,)))),
        Facts(
            title="Frozen before the first run",
            rows=tuple((key.replace("_", " "), (_value(value),)) for key, value in answers.analysis.items() if key not in APART),
        ),
        Facts(
            title="Identity",
            rows=(
                ("file", (path_text(plan.path),)),
                ("plan", (plan.plan_id,)),
                ("analysis", (plan.analysis_digest,)),
                ("check it", (command("verify", results.folder),)),
                ("repeat it", (command("bundle", results.folder), "then, also elsewhere: tuneoff reproduce BUNDLE")),
            ),
        ),
    ]


def _value(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str | int) for item in value):
        text = ", ".join(map(str, value)) or "none"
    elif isinstance(value, str | int | float):
        text = str(value)
    else:
        text = canonical_json(dict(value) if isinstance(value, Mapping) else value)
    return text if len(text) <= KEPT else f"{text[:KEPT]} ..."


class Links:
    """The anchors of runs, and the relative paths of files. `folder`: where the page will lie."""

    def __init__(self, results: Results, folder: Path) -> None:
        self._folder = folder
        self._results = results
        self._in_table = frozenset(run.run_id for run in results.planned[:MOST_RUNS])

    def run(self, run_id: str) -> str:
        """Return the link to a run's row in the table of runs, "" where it has none."""
        return f"#run-{run_id}" if run_id in self._in_table else ""

    def file(self, record: RunRecord) -> str:
        """Return the link to a record's file."""
        return path_link(self._results.folder / self._results.run_folder(record) / RECORD, self._folder)


def visible(value: object) -> str:
    """Return a text with what a reader could not see, or what would turn its direction, as escapes: `\\x1b`, `\\u202e`.

    What is markup already is our own.
    """
    if isinstance(value, Markup):
        return value
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in ALLOWED else character.encode("unicode_escape").decode()
        for character in text
    )


def mean_difference(pair: OverTasks, across: AcrossTasks) -> FigureCell:
    """Return the mean of one against other, none where runs failed; its bounds are those of the family."""
    return size_cell(pair.mean if not any(pair.failures) else None, compared_by(across))


def p_text(pair: OverTasks) -> str:
    """Return the p of a pair; it is never 0."""
    if pair.p is None:
        return MISSING
    return f"<{LEAST_P}" if pair.p < LEAST_P else f"{pair.p:.3f}"


def with_command(text: str) -> Markup:
    """Return a text; a command that it ends with (`...: tuneoff compare ...`) is code that breaks at blanks alone."""
    before, command = split_command(text)
    spans = Markup(" ").join(Markup('<span class="word">{}</span>').format(visible(word)) for word in command.split(" "))
    return escape(visible(before)) + (
        Markup(" <code>{}</code>" if before else "<code>{}</code>").format(spans) if command else ""
    )


_FILTERS = (  # `{{ verdict | pair_cell }}`
    *(mean_difference, p_text),
    *(frameworks.added_cell, frameworks.added_range, frameworks.report_cell, frameworks.job_cell, frameworks.job_range),
    *(frameworks.failed, frameworks.ratio_cell, frameworks.ratio_cells, frameworks.signs_used),
    *(frameworks.run_cells, figure_cell, drawing.strip, job_parts.bars, shares.drawn),
    *(runs.run_cell, runs.run_flags, strategy_text, variant_text),
    *(texts.about, texts.judged, texts.look, texts.noise_floor, texts.pair_cell),
    *(
        texts.robustness,
        texts.seeds_to_decide,
        with_command,
        counted,
        duration_text,
        number,
        score,
        display_unit,
        scope_text,
        sentence,
    ),
)


def render(
    page: Mapping[str, Any], *, live: str = "", template: str = "report.html", templates: Environment | None = None
) -> str:
    """Return the HTML of what `page` gives. `live`: the markup that stands above it; then the page follows that.

    `templates`: where the template is, if not among those of this package.
    """
    script = resource(SCRIPT) + (resource(LIVE_SCRIPT) if live else "")
    return (
        (templates or environment())
        .get_template(template)
        .render(
            page,
            live=Markup(live),  # our own, so nothing to escape
            style=Markup(style()),  # our own, so nothing to escape
            script=Markup(script),  # our own, so nothing to escape
            script_hash=f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}",  # for the page's policy
        )
    )


def live_section(state: Mapping[str, Any], version: str) -> str:
    """Return the HTML of a live state, as `sentences.to_json` gives it. `version`: differs once the report below it does."""
    return environment().get_template("live.html").render(state=state, version=version)


@functools.cache
def environment() -> Environment:
    """Return the templates with their filters, compiled once; all that they write is escaped."""
    templates = Environment(
        loader=PackageLoader("tuneoff.tell.page"),
        autoescape=True,
        finalize=visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(
        {function.__name__: function for function in _FILTERS}, status_symbol=lambda name: runs.STATUSES.get(name, "!")
    )
    return templates


def style() -> str:
    """Return the page's style sheet, with the colours that the plots are drawn in."""
    light, dark = drawing.css("light"), drawing.css("dark")
    colours = (
        f":root{{{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{{dark}}}}}\n"
    )
    return colours + resource(STYLE)


def resource(name: str) -> str:
    """Return a file of the templates' folder."""
    return (files("tuneoff.tell.page") / "templates" / name).read_text(encoding="utf-8")
