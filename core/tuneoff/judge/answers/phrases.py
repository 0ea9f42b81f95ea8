"""Verdicts, differences and figures in words.

The verdicts come question by question, the primary one first. What no verdict says is not said: there is no ranking.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_

from tuneoff.base.format import MISSING, counted, counted_range, figure, listed, score, shown_unit, times, times_text
from tuneoff.experiment.metric_catalogue import METRICS
from tuneoff.experiment.names import with_pruner
from tuneoff.judge.answers.answer import UNCHECKED, Answers, Outcome, OverTasks, Question, Verdict
from tuneoff.judge.results import POOL, Scope
from tuneoff.judge.stats.location import Interval

_BETTER = {  # what the better one of a pair does, by question or its metric
    "quality": "finds better models than",
    "time": "is faster than",
    "overhead.per_trial": "has less overhead per trial (start-up included) than",
    "energy": "needs less energy than",
    "cost": "costs less than",
}
ESTIMATED = "estimated by a model"
_AMOUNTS = {metric.unit for metric in METRICS.values()} - {""}  # units, not names
_SEARCH = {"random": "random search", "fixed": "fixed configurations", "grid": "grid search", "default": "default sampler"}
NO_VERDICTS = "No verdicts"  # begins the claim that nothing is judged
MOST_SCOPES = 4  # of a question, each with its own sentences; beyond, verdicts are counted over the scopes


def question_text(question: Question) -> str:
    """Return a question as a heading: `Time (time.jct)`."""
    name = question.name.replace("_", " ").replace("-", " ")
    return f"{name[:1].upper()}{name[1:]} ({question.metric})"


def scope_text(scope: Scope) -> str:
    """Return a scope in words: `random search, digits-300-small`."""
    strategy = with_pruner(_SEARCH.get(scope.sampler, scope.sampler), scope.pruner)
    return ", ".join(part for part in (strategy, scope.variant, scope.task) if part)


def display_unit(metric: str, unit: str) -> tuple[str, float]:
    """Return the unit in which a metric is read, and the factor from its own; "" for a score, which has its name for a unit.

    A job's times are in seconds; what a framework takes per trial is in ms.
    """
    if unit not in _AMOUNTS:
        return "", 1.0
    return (unit, 1.0) if unit == "ms" and not metric.startswith("time.") else shown_unit(unit)


def difference_text(interval: Interval | None, question: Question) -> str:
    """Return one against other: `2.9x (1.5 to 4.8)` on the ratio scale, else one − other in the metric's unit."""
    if interval is None or math.isinf(interval.estimate):
        return MISSING
    if question.scale == "ratio":
        return times_text(*map(ratio_of, (interval.estimate, interval.low, interval.high)))
    low, high = (signed(bound, question) for bound in (interval.low, interval.high))
    return f"{signed(interval.estimate, question)} ({low} to {high})"


def seen_text(verdict: Verdict) -> str:
    """Return a verdict's size: a ratio has the median difference beside it; with failed runs how many of each failed."""
    interval, question = verdict.interval, verdict.question
    if any(verdict.failures):
        return "failed runs: {} and {}".format(*verdict.failures)
    text = difference_text(interval, question)
    amount = median_difference(verdict)
    if interval is None or amount is None or question.scale != "ratio":
        return text
    return f"{text}, {signed(amount, replace(question, scale='difference'))}"


def median_difference(verdict: Verdict) -> float | None:
    """Return the median of one − other by seed in the metric's unit; None without a seed in which both have a finite value."""
    differences = [row.one - row.other for row in verdict.differences if row.one is not None and row.other is not None]
    differences = [value for value in differences if math.isfinite(value)]
    return statistics.median(differences) if differences else None


def ratio_of(value: float) -> float:
    """Return the ratio of a difference on the ratio scale, which is its logarithm."""
    return math.exp(value) if value < 700 else math.inf


def signed(value: float, question: Question) -> str:
    """Return a difference on a question's scale with its sign; on the ratio scale the ratio."""
    if question.scale == "ratio":
        return times_text(*[ratio_of(value)] * 3)
    if math.isinf(value):
        return "+∞" if value > 0 else "−∞"
    unit, factor = display_unit(question.metric, question.unit)
    size = figure(abs(value * factor)) if unit else score(abs(value))
    return f"{_sign(value)}{size} {unit}".rstrip() if unit != "count" else f"{_sign(value)}{size}"


def floor_text(verdict: Verdict) -> str:
    """Return the noise floor as far as its greater bound reaches to both sides; MISSING without an A/A pair.

    On the ratio scale both sides are told: `0.88 to 1.1x`.
    """
    floor, question = verdict.noise_floor, verdict.question
    if floor is None:
        return MISSING
    if question.scale == "ratio":
        return f"{times(ratio_of(-floor_size(floor)))} to {times(ratio_of(floor_size(floor)))}x"
    return f"±{signed(floor_size(floor), question).removeprefix('+')}"


def floor_size(floor: Interval) -> float:
    """Return the greatest difference that the interval of an A/A pair holds."""
    return max(abs(floor.low), abs(floor.high))


def is_within_noise(interval: Interval | None, floor: Interval | None) -> bool:
    """Whether a difference is no larger than what an A/A pair's interval holds."""
    return interval is not None and floor is not None and abs(interval.estimate) <= floor_size(floor)


def named(label: str) -> str:
    """Return a label for a sentence; the baseline is marked, as it is not a framework."""
    return f"{label} (baseline)" if label.partition("#")[0] == POOL else label


def claim(verdict: Verdict) -> str:
    """Return a decided verdict as a sentence without its end: the better one first, by how much, how sure.

    Where failed runs decide it neither is called faster: the other one has no value that could be compared.
    """
    question = verdict.question
    is_first = verdict.outcome is Outcome.BETTER
    first, second = (verdict.one, verdict.other) if is_first else (verdict.other, verdict.one)
    notes = ", ".join((*failed_runs(verdict), *_notes(verdict)))
    if verdict.is_by_failures:
        return f"{named(second)} failed where {named(first)} did not, which decides {question.name} ({notes})"
    verb = _BETTER.get(question.metric) or _BETTER.get(question.name, f"is better in {question.metric} than")
    size = size_text(verdict.interval, question, is_first=is_first) if not any(verdict.failures) else ""
    return f"{named(first)} {verb} {named(second)}{size} ({notes})"


def failed_runs(verdict: Verdict | OverTasks) -> list[str]:
    """Return of whom how many runs failed: "2 runs of optuna failed"."""
    pairs = zip((verdict.one, verdict.other), verdict.failures, strict=True)
    return [f"{counted(count, 'run')} of {name} failed" for name, count in pairs if count]


def estimated(verdict: Verdict | OverTasks) -> str:
    """Return that values are estimated, and for which weights of a model the claim holds."""
    return ESTIMATED if verdict.weights is None else f"{ESTIMATED}, at every weight from {verdict.weights.text}"


def is_decided(verdict: Verdict) -> bool:
    """Whether one of a pair is better."""
    return verdict.outcome in (Outcome.BETTER, Outcome.WORSE)


def size_text(interval: Interval | None, question: Question, *, is_first: bool) -> str:
    """Return by how much the better one is better, `is_first`: the first of one − other; " by 2.9x (1.5 to 4.8)"."""
    if interval is None or math.isinf(interval.estimate):
        return ""
    better = interval if is_first == (question.better == "max") else -interval
    return f" by {difference_text(better, question).replace('+', '')}"


def _notes(verdict: Verdict) -> Iterator[str]:
    if verdict.is_estimated:
        yield estimated(verdict)
    names = [change.choice for change in verdict.changing]  # "without seed 3", "median", "energy weights low"
    by = ("" if name.startswith("without") else "with " if name.startswith("energy") else "by the " for name in names)
    yield verdict.robustness + (f": another verdict {', '.join(map(str.__add__, by, names))}" if names else "")
    floor = floor_text(verdict)
    within = "no larger than the " if is_within_noise(verdict.interval, verdict.noise_floor) else ""
    yield "noise floor not measured" if floor == MISSING else f"{within}noise floor {floor}"
    yield verdict.disturbance.text


def _sign(value: float) -> str:
    return "+" if value > 0 else "−" if value < 0 else ""


def claims(answers: Answers) -> Iterator[tuple[str, str]]:
    """Yield what the report says first, a claim per verdict, or per group of scopes: its heading, "" for none, and its text."""
    verdicts = [verdict for verdict in answers.verdicts if not verdict.is_noise]
    if not verdicts:
        yield "", f"{NO_VERDICTS}: no scope has two frameworks to compare."
        return
    same = _common_reason(verdicts)
    for across in answers.across:
        if same is not None or across.question.name == answers.questions[0].name:
            yield "", across.texts[0]
    if same is not None:
        within = " within a task" if answers.across else ""
        yield "", f"{NO_VERDICTS}{within}: {same}. Values and intervals only."
        return
    for question in answers.questions:
        is_estimated = any(group.estimate(question.metric).is_estimated for group in answers.groups)
        heading = f"{question_text(question)}{', estimated' if is_estimated else ''}"
        of_scope: dict[Scope, list[Verdict]] = {}
        for verdict in verdicts:
            if verdict.question.name == question.name:
                of_scope.setdefault(verdict.scope, []).append(verdict)
        same = _common_reason([verdict for in_scope in of_scope.values() for verdict in in_scope])
        if of_scope and same is not None:
            yield heading, f"no verdict: {same}."
        elif len(of_scope) > MOST_SCOPES:
            yield from _counted(heading, of_scope)
        else:
            for scope, in_scope in of_scope.items():
                where = f"{heading}, {scope_text(scope)}, {counted_range((verdict.seeds for verdict in in_scope), 'seed')}"
                yield from ((where, text) for text in _of_scope(question, in_scope))


def sentence(heading: str, text: str) -> str:
    """Return a claim by itself."""
    return f"{heading}: {text}" if heading else text


def _of_scope(question: Question, verdicts: Sequence[Verdict]) -> Iterator[str]:
    by_outcome: dict[Outcome, list[Verdict]] = {outcome: [] for outcome in Outcome}
    for verdict in verdicts:
        by_outcome[verdict.outcome].append(verdict)
        if is_decided(verdict):
            yield f"{claim(verdict)}."
    for outcome in (Outcome.EQUIVALENT, Outcome.EQUIVALENT_THOUGH_DIFFERENT):
        if alike := by_outcome[outcome]:
            estimates = dict.fromkeys(estimated(verdict) for verdict in alike if verdict.is_estimated)
            notes = f"{listed(estimates)}; " if estimates else ""
            doubts = sorted({verdict.robustness for verdict in alike} - {"robust", ""})
            robustness = "; ".join((_disturbance(alike), *doubts))
            yield f"{outcome.text}: {_pairs(alike)} ({notes}margin {question.margin_text}; {robustness})."
    for outcome in (Outcome.UNDECIDED, Outcome.NOT_JUDGED):
        by_reason: dict[str, list[Verdict]] = {}
        for verdict in by_outcome[outcome]:
            by_reason.setdefault(verdict.reason, []).append(verdict)
        for reason, of_reason in by_reason.items():
            needed = {verdict.seeds_to_decide for verdict in of_reason if verdict.seeds_to_decide is not None}
            seeds = f"{'at most ' if len(needed) > 1 else ''}about {counted(max(needed, default=0), 'seed')}"
            advice = f"; a new experiment with {seeds} would decide" if needed else ""
            yield f"{outcome.text}: {_pairs(of_reason)}: {reason}{advice}."


def _disturbance(verdicts: Sequence[Verdict]) -> str:
    """Return how many of the runs behind some verdicts were disturbed."""
    return reduce(or_, (verdict.disturbance for verdict in verdicts)).text


def _pairs(verdicts: Sequence[Verdict]) -> str:
    return "; ".join(f"{named(verdict.one)} and {named(verdict.other)}" for verdict in verdicts)


def _counted(heading: str, by_scope: dict[Scope, list[Verdict]]) -> Iterator[tuple[str, str]]:
    """Yield in how many of the scopes each pair has which outcome; pairs in which no one is ever better, together."""
    strategies: dict[str, dict[tuple[str, str], list[Verdict]]] = {}
    for scope, verdicts in by_scope.items():
        pairs = strategies.setdefault(with_pruner(scope.sampler, scope.pruner), {})
        for verdict in verdicts:
            pairs.setdefault((verdict.one, verdict.other), []).append(verdict)
    for strategy, pairs in strategies.items():
        apart = {names: of_pair for names, of_pair in pairs.items() if any(map(is_decided, of_pair))}
        for (label, other), of_pair in apart.items():
            parts = f"{', '.join(_parts(of_pair))}; {_disturbance(of_pair)}"
            yield f"{heading}, {strategy}, {counted(len(of_pair), 'scope')}", f"{label} and {other}: {parts}."
        rest = Counter(verdict.outcome.text for names, of_pair in pairs.items() if names not in apart for verdict in of_pair)
        if rest:
            counts = ", ".join(f"{count} {outcome}" for outcome, count in rest.most_common())
            others = "the other pairs" if apart else "all pairs"
            yield f"{heading}, {strategy}", f"{others}: none is shown to be better in any scope ({counts})."


def _parts(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield in how many scopes a pair has each outcome: "optuna is better in 10 of 12 (9 robust)"."""
    by_words: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        better = {Outcome.BETTER: f"{verdict.one} is better", Outcome.WORSE: f"{verdict.other} is better"}
        by_words.setdefault(better.get(verdict.outcome, verdict.outcome.text), []).append(verdict)
    for words, matching in sorted(by_words.items(), key=lambda item: -len(item[1])):
        sure = Counter(verdict.robustness for verdict in matching)
        unchecked = f", {sure[UNCHECKED]} {UNCHECKED}" if sure[UNCHECKED] else ""
        robust = f" ({sure['robust']} robust{unchecked})" if is_decided(matching[0]) else ""
        yield f"{words} in {len(matching)} of {len(verdicts)}{robust}"


def _common_reason(verdicts: Sequence[Verdict]) -> str | None:
    """Return why nothing at all was judged, where it is the same for all."""
    reasons = {verdict.reason for verdict in verdicts}
    if all(verdict.outcome is Outcome.NOT_JUDGED for verdict in verdicts):
        return reasons.pop() if len(reasons) == 1 else "; ".join(sorted(reasons))
    return None
