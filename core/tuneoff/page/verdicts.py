"""The verdicts of each question as tables: outcome, interval, noise floor, sensitivity, and the seeds behind them."""

from __future__ import annotations

from collections.abc import Sequence

from tuneoff.answers.model import Answers, Outcome, Question, RunRef, Scope, Sensitivity, Verdict
from tuneoff.page import view
from tuneoff.page.marks import OUTCOMES
from tuneoff.page.places import Places
from tuneoff.page.strip import reach, strip
from tuneoff.page.words import bracketed, on_scale, percent, plain
from tuneoff.report.figures import MISSING, shown_unit
from tuneoff.words import counted

MOST_DIFFERENCES = 4000  # rows of seeds on the whole page; beyond, the page would be too large
BETTER = {"min": "lower is better", "max": "higher is better"}


def question_tables(answers: Answers, places: Places) -> list[view.QuestionTable]:
    """Return one table per question, in their order."""
    by_question: dict[str, list[Verdict]] = {question.name: [] for question in answers.questions}
    for verdict in answers.verdicts:
        by_question.setdefault(verdict.question.name, []).append(verdict)
    with_seeds = sum(len(verdict.differences) for verdict in answers.verdicts) <= MOST_DIFFERENCES
    return [_table(question, by_question[question.name], answers, places, with_seeds) for question in answers.questions]


def _table(
    question: Question, verdicts: Sequence[Verdict], answers: Answers, places: Places, with_seeds: bool
) -> view.QuestionTable:
    scopes: dict[Scope, list[Verdict]] = {}
    for verdict in verdicts:
        scopes.setdefault(verdict.scope, []).append(verdict)
    judged = any(verdict.outcome is not Outcome.NOT_JUDGED and not verdict.is_noise for verdict in verdicts)
    unit = shown_unit(question.unit)[0]
    is_ratio = question.scale == "ratio"
    margin = f"Margin: {question.margin_text}." if question.margin is not None else f"No margin: {question.margin_text}."
    return view.QuestionTable(
        name=question.name,
        title=question.name.capitalize(),
        about=f"{question.metric}, {BETTER[question.better]}. {margin} {_confidence(answers, judged)}",
        header="one ÷ other" if is_ratio else f"one − other{f', {unit}' if unit else ''}",
        scopes=tuple(_scope(scope, found, places, with_seeds) for scope, found in scopes.items()),
        judged=judged,
        axis=_axis(question),
    )


def _axis(question: Question) -> str:
    """Return which side of the drawing is which."""
    left = question.better == "min"
    return f"Left of the line: the first of the pair is {'better' if left else 'worse'}; right: {'worse' if left else 'better'}."


def _confidence(answers: Answers, judged: bool) -> str:
    if not judged:
        return f"Intervals at {percent(answers.confidence)} for each pair on its own; no verdict is made."
    return f"Intervals keep {percent(answers.confidence)} for a family of {counted(answers.family_size, 'comparison')}."


def _scope(scope: Scope, verdicts: Sequence[Verdict], places: Places, with_seeds: bool) -> view.Rows:
    limit = reach(verdicts)
    return view.Rows(scope=scope.text, rows=tuple(_row(verdict, limit, places, with_seeds) for verdict in verdicts))


def _row(verdict: Verdict, limit: float, places: Places, with_seeds: bool) -> view.VerdictRow:
    scale = verdict.question.scale
    symbol, css = OUTCOMES[verdict.outcome]
    interval = verdict.interval
    if verdict.is_noise:
        symbol, css = "≡", "noise"
    return view.VerdictRow(
        one=view.Link(text=verdict.one, href=places.group(verdict.one, verdict.scope)),
        other=view.Link(text=verdict.other, href=places.group(verdict.other, verdict.scope)),
        outcome="noise floor" if verdict.is_noise else str(verdict.outcome),
        css=css,
        symbol=symbol,
        estimate=on_scale(interval.estimate, scale) if interval is not None else MISSING,
        interval=bracketed(interval, scale),
        strip=strip(verdict, limit, css),
        n=interval.n if interval is not None else sum(one.difference is not None for one in verdict.differences),
        failures=f"{verdict.failures[0]} / {verdict.failures[1]}",
        noise_floor=bracketed(verdict.noise_floor, scale) if verdict.noise_floor is not None else "not measured",
        strip_symbols=tuple(_sensitivities(verdict.sensitivities)),
        robust=_robust(verdict),
        seeds=_seeds(verdict),
        reason=verdict.reason,
        is_noise=verdict.is_noise,
        differences=tuple(_differences(verdict, places)) if with_seeds else (),
        method=f"{interval.method}, {percent(interval.confidence)}" if interval is not None else "",
    )


def _robust(verdict: Verdict) -> str:
    if verdict.outcome is Outcome.NOT_JUDGED or not verdict.sensitivities:
        return MISSING
    return "robust" if verdict.is_robust else "not robust"


def _seeds(verdict: Verdict) -> str:
    if verdict.seeds_to_decide is not None:
        return f"about {verdict.seeds_to_decide}"
    return "none would do" if verdict.outcome is Outcome.UNDECIDED else MISSING


def _sensitivities(found: Sequence[Sensitivity]) -> list[view.Sensitivity]:
    """Return the choices by outcome, the most frequent first."""
    groups: dict[Outcome, list[str]] = {}
    for one in found:
        groups.setdefault(one.outcome, []).append(one.choice)
    return [
        view.Sensitivity(symbol=OUTCOMES[outcome][0], css=OUTCOMES[outcome][1], outcome=str(outcome), choices=tuple(choices))
        for outcome, choices in sorted(groups.items(), key=lambda item: -len(item[1]))
    ]


def _differences(verdict: Verdict, places: Places) -> list[view.Difference]:
    scale, (unit, times) = verdict.question.scale, shown_unit(verdict.question.unit)
    result = []
    for one in verdict.differences:
        runs = [places.run(label, verdict.scope, one.seed) for label in (verdict.one, verdict.other)]
        values = [_value(value, run, unit, times) for value, run in zip((one.one, one.other), runs, strict=True)]
        result.append(
            view.Difference(
                seed=one.seed,
                one=values[0],
                other=values[1],
                difference=on_scale(one.difference, scale) if one.difference is not None else MISSING,
                one_href=places.run_link(runs[0]),
                other_href=places.run_link(runs[1]),
                reason=one.reason or "",
            )
        )
    return result


def _value(value: float | None, run: RunRef | None, unit: str, times: float) -> str:
    if value is not None:
        return plain(value * times, unit)
    return run.status if run is not None and run.status != "done" else MISSING
