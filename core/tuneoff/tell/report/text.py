"""The answer of a results folder as text: what `tuneoff report --text` prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from tuneoff.base.commands import command
from tuneoff.base.format import counted
from tuneoff.judge.answers.answer import Answers
from tuneoff.judge.choice.choice import Choice, Point, ScalingCurve
from tuneoff.judge.choice.curve import FIGURES, amount_text, x_text
from tuneoff.judge.warnings import ResultsWarning
from tuneoff.tell.report.tables import ending


def report_lines(choice: Choice, width: int | None) -> Iterator[str]:
    """Yield the choice, the figures over what the matrix varies, the verdicts and what cannot be concluded.

    `width`: columns of the terminal; None: there is none. Of what a request leaves nothing of only the refusal is told.
    """
    yield from ending(choice, width)
    if not choice.refusal:
        yield ""
        for setting in choice.settings:
            names = {row.label: row.marked for row in setting.rows}
            for curve in setting.curves:
                yield f"{FIGURES[curve.metric][0]} ({', '.join(filter(None, ('sampler ' + setting.name, curve.beside)))}):"
                for label, points in curve.lines.items():
                    yield f"  {names[label]}: {'; '.join(_figure(curve, point) for point in points)}"
        yield from _answer_lines(choice.answers, choice.warnings)


def _figure(curve: ScalingCurve, point: Point) -> str:
    extrapolated = " (extrapolated)" if point.is_extrapolated else ""
    predicted = f", {amount_text(curve, point.predicted)} predicted{extrapolated}" if point.predicted is not None else ""
    return f"{x_text(curve, point)} {amount_text(curve, point.value.estimate)}{predicted}"


def _answer_lines(answers: Answers, warnings: Iterable[ResultsWarning]) -> Iterator[str]:
    """Yield the verdicts in words, and what cannot be concluded."""
    total = sum(answers.statuses.values())
    came = ", ".join(f"{count} {status}" for status, count in sorted(answers.statuses.items()))
    yield f"{answers.name}: {counted(total, 'planned run')}: {came}"
    yield ""
    for (question, where), grouped in groupby(answers.claims, key=lambda claim: (claim.question, claim.where)):
        heading = ", ".join(filter(None, (question, where)))
        claims = list(grouped)
        if len(claims) == 1 or not heading:  # a claim that is alone keeps its heading in its line
            yield from (claim.sentence for claim in claims)
        else:
            yield f"{heading}:"
            yield from (f"  - {claim.text}" for claim in claims)
    yield ""
    yield "What cannot be concluded:"
    yield from (f"  - {warning.long}" for warning in warnings)
    percent = 100 * answers.confidence
    family = answers.family_size
    yield (
        f"Intervals of medians: {percent:g} %. Verdicts: paired by seed, {percent:g} % over a family of {family} pairs per "
        f"question and scope (Bonferroni). How to read them: {command('explain', 'docs/verdicts.md')}"
    )
