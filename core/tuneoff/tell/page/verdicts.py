"""The verdicts of each question as tables: outcome, interval, noise floor, sensitivity, and the seeds behind them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tuneoff.base.format import ESTIMATED, MISSING
from tuneoff.base.words import counted
from tuneoff.judge.answers.answer import Answers, Estimate, EstimatedGroup, Outcome, Question, Sensitivity, Verdict
from tuneoff.judge.answers.phrases import floor_text, median_text, scope_text, signed, success_text, value_text
from tuneoff.judge.runs import RunRef, Scope
from tuneoff.judge.stats.interval import Interval
from tuneoff.tell.page import view
from tuneoff.tell.page.anchors import Places
from tuneoff.tell.page.symbols import OUTCOMES
from tuneoff.tell.page.words import confidence

MOST_DIFFERENCES = 4000  # rows of seeds on the whole page; beyond, the page would be too large
BETTER = {"min": "lower is better", "max": "higher is better"}
NOISE = ("≡", "noise")  # symbol and CSS class of an A/A pair


def question_tables(answers: Answers, places: Places) -> list[view.QuestionTable]:
    """Return one table per question, in their order."""
    with_seeds = sum(len(verdict.differences) for verdict in answers.verdicts) <= MOST_DIFFERENCES
    return [_table(question, answers, places, with_seeds) for question in answers.questions]


def glance(answers: Answers) -> view.Glance | None:
    """Return all outcomes side by side, a row per pair and a column per question; None where nothing is judged."""
    own = [verdict for verdict in answers.verdicts if not verdict.is_noise]
    if all(verdict.outcome is Outcome.NOT_JUDGED for verdict in own):
        return None
    found: dict[Scope, dict[tuple[str, str], dict[str, Verdict]]] = {}
    for verdict in own:
        found.setdefault(verdict.scope, {}).setdefault((verdict.one, verdict.other), {})[verdict.question.name] = verdict
    names = [question.name for question in answers.questions]
    return view.Glance(
        headings=tuple(name.capitalize() for name in names),
        scopes=tuple(
            view.GlanceScope(
                scope=scope_text(scope),
                rows=tuple((pair, tuple(_outcome(verdicts.get(name)) for name in names)) for pair, verdicts in pairs.items()),
            )
            for scope, pairs in found.items()
        ),
    )


def _outcome(verdict: Verdict | None) -> view.Outcome:
    if verdict is None:
        return view.Outcome(text=MISSING, symbol="", css="unjudged")
    symbol, css = OUTCOMES[verdict.outcome]
    interval = verdict.interval
    amount = signed(interval.estimate, verdict.question) if interval is not None else ""
    is_sure = verdict.is_robust or verdict.outcome in (Outcome.UNDECIDED, Outcome.NOT_JUDGED)
    note = "" if is_sure else verdict.robustness
    return view.Outcome(text=str(verdict.outcome), symbol=symbol, css=css, amount=amount, note=note)


def _table(question: Question, answers: Answers, places: Places, with_seeds: bool) -> view.QuestionTable:
    scopes: dict[Scope, list[Verdict]] = {}
    for verdict in answers.verdicts:
        if verdict.question.name == question.name:
            scopes.setdefault(verdict.scope, []).append(verdict)
    found = [verdict for verdicts in scopes.values() for verdict in verdicts]
    judged = any(verdict.outcome is not Outcome.NOT_JUDGED and not verdict.is_noise for verdict in found)
    margin = f"Margin: {question.margin_text}." if question.margin is not None else f"No margin: {question.margin_text}."
    return view.QuestionTable(
        name=question.name,
        title=question.name.capitalize(),
        about=f"{question.metric}, {BETTER[question.better]}. {margin} {_confidence(answers, judged)}",
        header="one against other" if question.scale == "ratio" else "one − other",
        scopes=tuple(_scope(scope, verdicts, places, with_seeds) for scope, verdicts in scopes.items()),
        judged=judged,
        estimates=tuple(_estimates(question, answers, places)),
    )


def _confidence(answers: Answers, judged: bool) -> str:
    if not judged:
        return "No verdict is made."
    return f"Intervals keep {confidence(answers.confidence)} for a family of {counted(answers.family_size, 'comparison')}."


def _estimates(question: Question, answers: Answers, places: Places) -> Iterator[view.EstimateRow]:
    for group in answers.groups:
        estimate = group.estimates.get(question.metric)
        if estimate is not None and group.same_as is None:
            yield view.EstimateRow(
                label=view.Link(text=group.label, href=places.group(group.label, group.scope)),
                scope=scope_text(group.scope),
                median=_interval(estimate, estimate.median),
                success=_success(group),
            )


def _interval(estimate: Estimate, interval: Interval | None) -> str:
    """Return an estimate with its interval, marked where it is estimated; without one, why."""
    if interval is None:
        return "; ".join(estimate.reasons) or MISSING
    mark = ESTIMATED if "estimated" in estimate.kinds else ""
    return mark + median_text(interval, estimate.metric, estimate.unit)


def _success(group: EstimatedGroup) -> str:
    done = sum(run.status == "done" for run in group.runs)
    return success_text(group.success, done, done + sum(run.is_failure for run in group.runs))


def _scope(scope: Scope, verdicts: Sequence[Verdict], places: Places, with_seeds: bool) -> view.Rows:
    return view.Rows(scope=scope_text(scope), rows=tuple(_row(verdict, places, with_seeds) for verdict in verdicts))


def _row(verdict: Verdict, places: Places, with_seeds: bool) -> view.VerdictRow:
    symbol, css = NOISE if verdict.is_noise else OUTCOMES[verdict.outcome]
    interval = verdict.interval
    floor = floor_text(verdict)
    return view.VerdictRow(
        one=view.Link(text=verdict.one, href=places.group(verdict.one, verdict.scope)),
        other=view.Link(text=verdict.other, href=places.group(verdict.other, verdict.scope)),
        outcome="noise floor" if verdict.is_noise else str(verdict.outcome),
        css=css,
        symbol=symbol,
        estimate=signed(interval.estimate, verdict.question) if interval is not None else MISSING,
        interval=_bounds(verdict),
        n=interval.n if interval is not None else sum(one.difference is not None for one in verdict.differences),
        failures=f"{verdict.failures[0]} / {verdict.failures[1]}",
        disturbance=verdict.disturbance.text,
        noise_floor=MISSING if verdict.is_noise else "not measured" if floor == MISSING else floor,
        sensitivities=() if verdict.is_noise else tuple(_sensitivities(verdict.sensitivities)),
        robust=_robust(verdict),
        seeds=_seeds(verdict),
        reason=verdict.reason,
        is_noise=verdict.is_noise,
        differences=tuple(_differences(verdict, places)) if with_seeds else (),
        method=f"{interval.method}, {confidence(interval.confidence)}" if interval is not None else "",
    )


def _bounds(verdict: Verdict) -> str:
    interval = verdict.interval
    if interval is None or (math.isinf(interval.low) and math.isinf(interval.high)):  # what few seeds tell
        return ""
    return f"[{signed(interval.low, verdict.question)}, {signed(interval.high, verdict.question)}]"


def _robust(verdict: Verdict) -> str:
    return "" if verdict.outcome is Outcome.NOT_JUDGED or verdict.is_noise else verdict.robustness


def _seeds(verdict: Verdict) -> str:
    if verdict.is_noise:
        return MISSING
    if verdict.seeds_to_decide is not None:
        return f"about {verdict.seeds_to_decide}"
    return "not known" if verdict.outcome is Outcome.UNDECIDED else MISSING


def _sensitivities(found: Sequence[Sensitivity]) -> list[view.Sensitivity]:
    """Return the choices by outcome, the most frequent first."""
    groups: dict[Outcome, list[str]] = {}
    for one in found:
        groups.setdefault(one.outcome, []).append(one.choice)
    return [
        view.Sensitivity(symbol=OUTCOMES[outcome][0], css=OUTCOMES[outcome][1], outcome=str(outcome), choices=tuple(choices))
        for outcome, choices in sorted(groups.items(), key=lambda item: -len(item[1]))
    ]


def _differences(verdict: Verdict, places: Places) -> Iterator[view.Difference]:
    for one in verdict.differences:
        runs = [places.run(label, verdict.scope, one.seed) for label in (verdict.one, verdict.other)]
        values = [_value(value, run, verdict.question) for value, run in zip((one.one, one.other), runs, strict=True)]
        yield view.Difference(
            seed=one.seed,
            one=view.Link(text=values[0], href=places.run_link(runs[0])),
            other=view.Link(text=values[1], href=places.run_link(runs[1])),
            difference=signed(one.difference, verdict.question) if one.difference is not None else MISSING,
            reason=one.reason or "",
        )


def _value(value: float | None, run: RunRef | None, question: Question) -> str:
    if value is not None:
        return value_text(value, question.metric, question.unit)
    return run.status if run is not None and run.status != "done" else MISSING
