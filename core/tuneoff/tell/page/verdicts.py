"""What the tables of verdicts write of a verdict and its seeds; all else the templates read from the answers."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tuneoff.base.format import ESTIMATED, MISSING, counted
from tuneoff.judge.answers.answer import Answers, Estimate, EstimatedGroup, Outcome, Question, Verdict
from tuneoff.judge.answers.phrases import floor_text, median_text, signed, success_text, value_text
from tuneoff.judge.runs import RunRef, Scope
from tuneoff.tell.page.texts import confidence

MOST_DIFFERENCES = 4000  # rows of seeds on the whole page; beyond, the page would be too large
OUTCOMES = {  # symbol and CSS class: never colour alone
    Outcome.BETTER: ("▲", "better"),
    Outcome.WORSE: ("▼", "worse"),
    Outcome.EQUIVALENT: ("=", "equivalent"),
    Outcome.EQUIVALENT_THOUGH_DIFFERENT: ("≈", "equivalent"),
    Outcome.UNDECIDED: ("?", "undecided"),
    Outcome.NOT_JUDGED: ("·", "unjudged"),
}
NOISE = ("≡", "noise")  # of an A/A pair
BETTER = {"min": "lower is better", "max": "higher is better"}

Glance = dict[Scope, dict[tuple[str, str], dict[str, Verdict]]]  # by scope, pair and question


def glance(answers: Answers) -> Glance:
    """Return all verdicts side by side, a row per pair and a column per question; empty where nothing is judged."""
    found: Glance = {}
    own = [verdict for verdict in answers.verdicts if not verdict.is_noise]
    if is_judged(own):
        for verdict in own:
            found.setdefault(verdict.scope, {}).setdefault((verdict.one, verdict.other), {})[verdict.question.name] = verdict
    return found


def verdicts_on(answers: Answers, question: Question) -> dict[Scope, list[Verdict]]:
    """Return the verdicts on a question, by scope."""
    found: dict[Scope, list[Verdict]] = {}
    for verdict in answers.verdicts:
        if verdict.question.name == question.name:
            found.setdefault(verdict.scope, []).append(verdict)
    return found


def is_judged(verdicts: Iterable[Verdict]) -> bool:
    """Whether anything is claimed of any of these pairs."""
    return any(verdict.outcome is not Outcome.NOT_JUDGED and not verdict.is_noise for verdict in verdicts)


def has_seeds(answers: Answers) -> bool:
    """Whether the page has room for the seeds of all pairs."""
    return sum(len(verdict.differences) for verdict in answers.verdicts) <= MOST_DIFFERENCES


def about(question: Question, answers: Answers, *, judged: bool) -> str:
    """Return what is asked, with the margin, and how sure the intervals of its table are."""
    margin = f"Margin: {question.margin_text}." if question.margin is not None else f"No margin: {question.margin_text}."
    sure = "No verdict is made."
    if judged:
        sure = f"Intervals keep {confidence(answers.confidence)} for a family of {counted(answers.family_size, 'comparison')}."
    return f"{question.metric}, {BETTER[question.better]}. {margin} {sure}"


def look(verdict: Verdict | Outcome) -> tuple[str, str, str]:
    """Return symbol, CSS class and word of an outcome."""
    if isinstance(verdict, Verdict) and verdict.is_noise:
        return *NOISE, "noise floor"
    outcome = verdict.outcome if isinstance(verdict, Verdict) else verdict
    return *OUTCOMES[outcome], str(outcome)


def note(verdict: Verdict) -> str:
    """Return how robust a claim is, where it is not robust."""
    is_sure = verdict.is_robust or verdict.outcome in (Outcome.UNDECIDED, Outcome.NOT_JUDGED)
    return "" if is_sure else verdict.robustness


def robustness(verdict: Verdict) -> str:
    """Return how robust an outcome is; "" where none is claimed."""
    return "" if verdict.outcome is Outcome.NOT_JUDGED or verdict.is_noise else verdict.robustness


def bounds(verdict: Verdict) -> str:
    """Return the interval's bounds; "" where there is none, or one that says nothing, as that of few seeds does."""
    interval = verdict.interval
    if interval is None or (math.isinf(interval.low) and math.isinf(interval.high)):
        return ""
    return f"[{signed(interval.low, verdict.question)}, {signed(interval.high, verdict.question)}]"


def noise_floor(verdict: Verdict) -> str:
    """Return how far an entry is from itself; an A/A pair has none."""
    floor = floor_text(verdict)
    return MISSING if verdict.is_noise else "not measured" if floor == MISSING else floor


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


def choices(verdict: Verdict) -> list[tuple[Outcome, list[str]]]:
    """Return the other reasonable choices by outcome, the most frequent first; an A/A pair has none."""
    groups: dict[Outcome, list[str]] = {}
    for one in () if verdict.is_noise else verdict.sensitivities:
        groups.setdefault(one.outcome, []).append(one.choice)
    return sorted(groups.items(), key=lambda item: -len(item[1]))


def seed_value(value: float | None, run: RunRef | None, question: Question) -> str:
    """Return a run's value on a question; without one, what the run came to."""
    if value is not None:
        return value_text(value, question.metric, question.unit)
    return run.status if run is not None and run.status != "done" else MISSING


def estimated_groups(answers: Answers, question: Question) -> list[EstimatedGroup]:
    """Return the groups with figures of their own on a question."""
    return [group for group in answers.groups if group.same_as is None and question.metric in group.estimates]


def own_median(estimate: Estimate) -> str:
    """Return a median with its interval, marked where it is estimated; without one, why."""
    if estimate.median is None:
        return "; ".join(estimate.reasons) or MISSING
    mark = ESTIMATED if "estimated" in estimate.kinds else ""
    return mark + median_text(estimate.median, estimate.metric, estimate.unit)


def runs_done(group: EstimatedGroup) -> str:
    """Return how many of the tried runs of a group are done, with Wilson's interval."""
    done = sum(run.status == "done" for run in group.runs)
    return success_text(group.success, done, done + sum(run.is_failure for run in group.runs))
