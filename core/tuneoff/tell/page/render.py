"""From the page's content to HTML: everything that comes from outside is escaped, and nothing is loaded."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from tuneoff.base.commands import split_command
from tuneoff.base.format import MISSING, counted, duration_text, figure, number, score
from tuneoff.experiment.names import strategy_text, variant_text
from tuneoff.judge.answers.across import compared_by
from tuneoff.judge.answers.answer import AcrossTasks, OverTasks
from tuneoff.judge.answers.phrases import display_unit, scope_text
from tuneoff.judge.stats.location import Interval
from tuneoff.tell.page import frameworks, runs, texts
from tuneoff.tell.page.texts import sentence, size_cell, visible
from tuneoff.tell.plots import drawing, job_parts, shares
from tuneoff.tell.report.tables import FigureCell, figure_cell

LEAST_P = 0.001  # that is shown
STYLE, SCRIPT, LIVE_SCRIPT = "report.css", "report.js", "live.js"


def mean_difference(pair: OverTasks, across: AcrossTasks) -> FigureCell:
    """Return the mean of one against other, none where runs failed; its bounds are those of the family."""
    return size_cell(pair.mean if not any(pair.failures) else None, compared_by(across))


def interval_cell(interval: Interval | None) -> FigureCell:
    """Return an estimate and, below it, its bounds."""
    if interval is None:
        return FigureCell(MISSING)
    return FigureCell(figure(interval.estimate), f"{figure(interval.low)} to {figure(interval.high)}")


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
    *(mean_difference, interval_cell, p_text),
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


def render(page: Mapping[str, Any], *, live: str = "", template: str = "report.html") -> str:
    """Return the HTML of what `report.page` gives. `live`: the markup that stands above it; then the page follows that."""
    script = resource(SCRIPT) + (resource(LIVE_SCRIPT) if live else "")
    return (
        environment()
        .get_template(template)
        .render(
            page,
            live=Markup(live),  # our own, so nothing to escape
            style=Markup(style()),  # our own, so nothing to escape
            script=Markup(script),  # our own, so nothing to escape
            script_hash=content_hash(script),
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


def content_hash(script: str) -> str:
    """Return what a Content-Security-Policy says of a script: `sha256-...`."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
