"""What the tables of pairs write of a verdict; all else the templates read from the answers."""

from __future__ import annotations

import math
from collections import Counter

from tuneoff.base.format import ESTIMATED, MISSING, counted, figure
from tuneoff.judge.answers.answer import Answers, Outcome, Question, Verdict
from tuneoff.judge.answers.phrases import floor_size, signed
from tuneoff.judge.runs import Scope
from tuneoff.judge.stats.interval import Interval
from tuneoff.tell.page.texts import confidence
from tuneoff.tell.report.figure_cell import FigureCell

MARKS = {  # symbol and CSS class; words stand beside them: never colour alone
    Outcome.BETTER: ("▲", "better"),
    Outcome.WORSE: ("▼", "worse"),
    Outcome.EQUIVALENT: ("=", "equivalent"),
    Outcome.EQUIVALENT_THOUGH_DIFFERENT: ("≈", "equivalent"),
    Outcome.UNDECIDED: ("?", "undecided"),
    Outcome.NOT_JUDGED: ("·", "unjudged"),
}
NOISE = ("≡", "noise", "the same again")  # of an A/A pair
BETTER = {"min": "lower is better", "max": "higher is better"}


def judged(answers: Answers, question: Question) -> dict[Scope, list[Verdict]]:
    """Return the verdicts on a question by scope, without the pairs of which nothing is claimed."""
    found: dict[Scope, list[Verdict]] = {}
    for verdict in answers.verdicts:
        if verdict.question.name == question.name and verdict.outcome is not Outcome.NOT_JUDGED:
            found.setdefault(verdict.scope, []).append(verdict)
    return found


def unjudged(answers: Answers) -> list[str]:
    """Return how many pairs are not judged on some question, by the reason."""
    reasons = Counter(one.reason for one in answers.verdicts if one.outcome is Outcome.NOT_JUDGED and not one.is_noise)
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
    estimate, low, high = interval.estimate, interval.low, interval.high
    if question.scale == "ratio":
        bounds = f"{_times(low)} to {_times(high)}"
        text = f"{_times(estimate)}x"
    else:
        bounds = f"{signed(low, question)} to {signed(high, question)}"
        text = signed(estimate, question)
    return FigureCell(text, "" if math.isinf(low) and math.isinf(high) else bounds)


def pair_cell(verdict: Verdict) -> FigureCell:
    """Return the size of a verdict, marked where it is estimated."""
    cell = size_cell(verdict.interval, verdict.question)
    return cell._replace(mark=ESTIMATED) if verdict.is_estimated and verdict.interval is not None else cell


def robustness(verdict: Verdict) -> str:
    """Return how robust an outcome is, and which other choices come to another one."""
    if verdict.is_noise:
        return ""
    other = f": another verdict {', '.join(one.choice for one in verdict.changing)}" if verdict.changing else ""
    return verdict.robustness + other


def noise_floor(verdict: Verdict) -> str:
    """Return how far an entry is from itself; an A/A pair has none."""
    if verdict.is_noise or verdict.noise_floor is None:
        return MISSING
    size = floor_size(verdict.noise_floor)
    return (
        f"{_times(-size)} to {_times(size)}x" if verdict.question.scale == "ratio" else f"±{signed(size, verdict.question)[1:]}"
    )


def pairs(verdict: Verdict) -> int:
    """Return how many seeds both have."""
    return verdict.interval.n if verdict.interval is not None else sum(one.difference is not None for one in verdict.differences)


def seeds_to_decide(verdict: Verdict) -> str:
    """Return how many seeds a new experiment would need."""
    if verdict.is_noise:
        return MISSING
    if verdict.seeds_to_decide is not None:
        return f"about {verdict.seeds_to_decide}"
    return "not known" if verdict.outcome is Outcome.UNDECIDED else MISSING


def _times(value: float) -> str:
    """Return a ratio from its logarithm."""
    return "∞" if value > 600 else figure(math.exp(value))
