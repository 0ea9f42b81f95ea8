"""The answer as text: verdicts in words first, then the pairs per question and scope, then what cannot be concluded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from tuneoff.base.format import MISSING
from tuneoff.base.output import columns
from tuneoff.judge.answers.across_texts import compared_by
from tuneoff.judge.answers.answer import AcrossTasks, Answers, Claim, Outcome, Question, Verdict
from tuneoff.judge.answers.phrases import difference_text, floor_text, question_text, scope_text
from tuneoff.judge.runs import Scope
from tuneoff.judge.stats.interval import Interval


def lines(answers: Answers, figures: Sequence[str] = ()) -> Iterator[str]:
    """Yield the answer's lines; `figures`: the table of figures."""
    total = sum(answers.statuses.values())
    came = ", ".join(f"{count} {status}" for status, count in sorted(answers.statuses.items()))
    yield f"{answers.name}: {total} planned runs: {came}"
    yield ""
    yield from _claims(answers.claims)
    yield ""
    yield from figures
    for question in answers.questions:
        for scope in answers.scopes:
            yield from _table(answers, question, scope)
    yield from _across(answers)
    yield ""
    yield "What cannot be concluded:"
    yield from (f"  - {limit}" for limit in answers.limits)
    percent = 100 * answers.confidence
    family = answers.family_size
    looks = f", {len(answers.looks)} looks" if answers.looks else ""
    yield (
        f"Intervals of medians: {percent:g} %. Verdicts: paired by seed, {percent:g} % over a family of {family} pairs per "
        f"question and scope (Bonferroni{looks}). How to read them: docs/verdicts.md"
    )


def _claims(claims: Sequence[Claim]) -> Iterator[str]:
    """Yield the claims below one heading per question and scope; a claim that is alone keeps its heading in its line."""
    for (question, where), found in groupby(claims, key=lambda one: (one.question, one.where)):
        heading = ", ".join(part for part in (question, where) if part)
        group = list(found)
        if len(group) == 1 or not heading:
            yield from (one.sentence for one in group)
        else:
            yield f"{heading}:"
            yield from (f"  - {one.text}" for one in group)


def _table(answers: Answers, question: Question, scope: Scope) -> Iterator[str]:
    verdicts = [one for one in answers.verdicts if one.scope == scope and one.question.name == question.name]
    if not verdicts:
        return
    own = verdicts[0].question
    better = "lower" if own.better == "min" else "higher"
    yield ""
    margin = f"margin {own.margin_text}" if own.margin is not None else f"no margin ({own.margin_text.removeprefix('none: ')})"
    yield f"{question_text(own)}, {scope_text(scope)}: {better} is better; {margin}"
    common = _common_reason(verdicts)
    rows = [_verdict(one, one.reason if _is_told(one) and not common else "") for one in verdicts]
    yield from _columns(["pair (one − other)", "difference", "noise floor", "verdict"], rows)
    if common:
        yield f"  {common}"


def _common_reason(verdicts: Sequence[Verdict]) -> str:
    """Return the reason that all verdicts share, where several do: it is said once, below them."""
    texts = {f"{one.outcome.text}: {one.reason}" for one in verdicts if _is_told(one)}
    return texts.pop() if len(texts) == 1 and sum(map(_is_told, verdicts)) > 1 else ""


def _is_told(one: Verdict) -> bool:
    """Whether the reason says more than the interval beside it."""
    return bool(one.reason) and not one.reason.startswith("the interval")


def _verdict(one: Verdict, reason: str) -> list[str]:
    sure = f", {one.robustness}" if one.robustness and one.outcome is not Outcome.UNDECIDED else ""
    noise = " [A/A]" if one.is_noise else ""
    return [
        f"{one.one}, {one.other}{noise}",
        difference_text(one.interval, one.question),
        MISSING if one.is_noise else floor_text(one),
        f"{one.outcome.text}{sure}{f': {reason}' if reason else ''}",
    ]


def _across(answers: Answers) -> Iterator[str]:
    every = [one.texts for one in answers.across]
    common = [text for text in every[0] if len(every) > 1 and all(text in texts for texts in every)] if every else []
    for one in answers.across:
        yield ""
        yield f"Across {len(one.tasks)} tasks, {question_text(one.question)}, {scope_text(one.scope)}"
        if one.iqm_regret:
            rows = [[label, _plain(one.iqm_regret[label]), _rank(one, label)] for label in one.labels]
            yield from _columns(["framework", "interquartile mean of regret", "mean rank"], rows)
        elif one.ranks:
            yield from _columns(["framework", "mean rank"], [[label, _rank(one, label)] for label in one.labels])
        if one.improvement:
            yield from _columns(
                ["pair (one, other)", "P(one is better)", "one − other, mean over the tasks", "p, sign flips, adjusted"],
                list(_pairs(one)),
            )
        yield from (f"  {text}" for text in one.texts if text not in common)
    if answers.across and common:
        yield ""
        yield "Across tasks, of all questions:"
        yield from (f"  {text}" for text in common)


def _pairs(one: AcrossTasks) -> Iterator[list[str]]:
    question = compared_by(one)
    known = {(pair.one, pair.other): pair for pair in one.compared}
    for names in dict.fromkeys((*one.improvement, *known)):
        pair, chance = known.get(names), one.improvement.get(names)
        noise = " [A/A]" if pair is not None and pair.is_noise else ""
        difference, p = (difference_text(pair.mean, question), pair.p) if pair is not None else (MISSING, None)
        yield [f"{', '.join(names)}{noise}", _plain(chance) if chance is not None else MISSING, difference, _p(p)]


def _plain(interval: Interval) -> str:
    return f"{interval.estimate:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def _p(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2g}"


def _rank(one: AcrossTasks, label: str) -> str:
    return f"{one.ranks[label]:.2f}" if label in one.ranks else MISSING


def _columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield an indented table."""
    yield from (f"  {line}" for line in columns(head, rows, margin=2).splitlines())
