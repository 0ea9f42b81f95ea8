"""Numbers, names, paths and verdicts as the page writes them; all else the templates read from the answers."""

from __future__ import annotations

import math
import os
from collections import Counter
from pathlib import Path
from urllib.parse import quote

from tuneoff.base.format import ESTIMATED, MISSING, counted
from tuneoff.judge.answers.answer import Answers, Outcome, Question, Verdict
from tuneoff.judge.answers.phrases import difference_text, floor_text, seen_text
from tuneoff.judge.results import Scope
from tuneoff.judge.stats.location import Interval
from tuneoff.tell.report.tables import SIGNS, FigureCell

CLASSES = {  # of CSS, by outcome; words stand beside the signs: never colour alone
    Outcome.BETTER: "better",
    Outcome.WORSE: "worse",
    Outcome.EQUIVALENT: "equivalent",
    Outcome.EQUIVALENT_THOUGH_DIFFERENT: "equivalent",
    Outcome.UNDECIDED: "undecided",
    Outcome.NOT_JUDGED: "unjudged",
}
MARKS = {outcome: (sign, CLASSES[outcome]) for outcome, (sign, _) in SIGNS.items()}  # symbol and CSS class
NOISE = ("≡", "noise", "the same again")  # of an A/A pair
BETTER = {"min": "lower is better", "max": "higher is better"}


def path_link(target: Path, folder: Path) -> str:
    """Return the relative, percent-encoded link from a page in `folder` to `target`; no text in it can be a scheme."""
    return quote(os.path.relpath(target, folder), safe="/", errors="surrogateescape")


def percent(value: float) -> str:
    """Return a share in percent."""
    return f"{100 * value:.0f}\u202f%"


def confidence(value: float) -> str:
    """Return a confidence in percent, exact enough that one below 1 is not 100 %."""
    return f"{100 * value:.4g}\u202f%"


def sentence(text: str) -> str:
    """Return a text with a great first letter and a full stop."""
    text = f"{text[:1].upper()}{text[1:]}"
    return text if text.endswith((".", "!", "?", ":")) else f"{text}."


def judged(answers: Answers, question: Question) -> dict[Scope, list[Verdict]]:
    """Return the verdicts on a question by scope, without the pairs of which nothing is claimed."""
    by_scope: dict[Scope, list[Verdict]] = {}
    for verdict in answers.verdicts:
        if verdict.question.name == question.name and verdict.outcome is not Outcome.NOT_JUDGED:
            by_scope.setdefault(verdict.scope, []).append(verdict)
    return by_scope


def unjudged(answers: Answers) -> list[str]:
    """Return how many pairs are not judged on some question, by the reason."""
    reasons = Counter(
        verdict.reason for verdict in answers.verdicts if verdict.outcome is Outcome.NOT_JUDGED and not verdict.is_noise
    )
    return [f"{counted(count, 'comparison')} not judged: {reason}" for reason, count in reasons.items()]


def about(question: Question, answers: Answers) -> str:
    """Return what is asked, with the margin, and how sure the intervals of its table are."""
    margin = f"margin {question.margin_text}" if question.margin is not None else f"no margin: {question.margin_text}"
    sure = f"intervals at {confidence(answers.confidence)} for a family of {counted(answers.family_size, 'comparison')}"
    return f"{question.metric}, {BETTER[question.better]}; {margin}; {sure}"


def look(verdict: Verdict) -> tuple[str, str, str]:
    """Return symbol, CSS class and word of what is claimed of the first of a pair."""
    return NOISE if verdict.is_noise else (*MARKS[verdict.outcome], verdict.outcome.text)


def size_cell(interval: Interval | None, question: Question) -> FigureCell:
    """Return one against other with its bounds: `2.9x`, `1.5 to 4.8`, or the difference in the metric's unit."""
    if interval is None:
        return FigureCell(MISSING)
    text, _, bounds = difference_text(interval, question).partition(" (")
    return FigureCell(text, "" if math.isinf(interval.low) and math.isinf(interval.high) else bounds.removesuffix(")"))


def pair_cell(verdict: Verdict) -> FigureCell:
    """Return the size of a verdict, marked where it is estimated; none where runs failed."""
    if any(verdict.failures):
        return FigureCell(MISSING, reason=seen_text(verdict))
    cell = size_cell(verdict.interval, verdict.question)
    return cell._replace(mark=ESTIMATED) if verdict.is_estimated and verdict.interval is not None else cell


def robustness(verdict: Verdict) -> str:
    """Return how robust an outcome is, and which other choices come to another one."""
    if verdict.is_noise:
        return ""
    other = f": another verdict {', '.join(change.choice for change in verdict.changing)}" if verdict.changing else ""
    return verdict.robustness + other


def noise_floor(verdict: Verdict) -> str:
    """Return how far an entry is from itself; an A/A pair has none."""
    return MISSING if verdict.is_noise else floor_text(verdict)


def seeds_to_decide(verdict: Verdict) -> str:
    """Return how many seeds a new experiment would need."""
    if verdict.is_noise:
        return MISSING
    if verdict.seeds_to_decide is not None:
        return f"about {verdict.seeds_to_decide}"
    return "not known" if verdict.outcome is Outcome.UNDECIDED else MISSING
