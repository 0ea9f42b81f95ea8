"""The verdicts in words, the primary question first. What no verdict says is not said: there is no ranking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_

from tuneoff.base.format import counted, listed
from tuneoff.experiment.names import with_pruner
from tuneoff.judge.answers.answer import UNCHECKED, Answers, Claim, Outcome, Question, Verdict
from tuneoff.judge.answers.phrases import claim, estimated, is_decided, named, one_of, question_text, scope_text
from tuneoff.judge.runs import Scope

NO_VERDICTS = "No verdicts"  # begins the claim that nothing is judged
MOST_SCOPES = 4  # of a question, each with its own sentences; beyond, verdicts are counted over the scopes


def claims(made: Answers) -> Iterator[Claim]:
    """Yield what the report says first, one claim per verdict, or per group of scopes."""
    verdicts = [one for one in made.verdicts if not one.is_noise]
    if not verdicts:
        yield _plain(f"{NO_VERDICTS}: there are no two frameworks in one scope to compare.")
        return
    same = _one_reason(verdicts)
    for across in made.across:
        if same is not None or across.question.name == made.questions[0].name:
            yield from map(_plain, across.texts[:1])
    if same is not None:
        within = " within a task" if made.across else ""
        below = "Below are the values and their intervals, and of single pairs nothing is claimed."
        yield _plain(f"{NO_VERDICTS}{within}: {same}. {below}")
        return
    for question in made.questions:
        is_estimated = any(group.estimate(question.metric).is_estimated for group in made.groups)
        heading = f"{question_text(question)}{', estimated' if is_estimated else ''}"
        yield from _of_question(heading, [one for one in verdicts if one.question.name == question.name])


def _plain(text: str) -> Claim:
    return Claim(question="", where="", text=text)


def _of_question(heading: str, verdicts: Sequence[Verdict]) -> Iterator[Claim]:
    by_scope: dict[Scope, list[Verdict]] = {}
    for one in verdicts:
        by_scope.setdefault(one.scope, []).append(one)
    if not by_scope:
        return
    same = _one_reason(verdicts)
    if same is not None:
        yield Claim(question=heading, where="", text=f"no verdict: {same}.")
    elif len(by_scope) > MOST_SCOPES:
        yield from _counted(heading, by_scope)
    else:
        for scope, found in by_scope.items():
            where = f"{scope_text(scope)}, {_seeds(found)}"
            yield from (Claim(question=heading, where=where, text=text) for text in _of_scope(found[0].question, found))


def _of_scope(question: Question, verdicts: Sequence[Verdict]) -> Iterator[str]:
    for one in verdicts:
        if is_decided(one):
            yield f"{claim(one)}."
    for outcome in (Outcome.EQUIVALENT, Outcome.EQUIVALENT_THOUGH_DIFFERENT):
        if alike := one_of(outcome, verdicts):
            told = dict.fromkeys(estimated(one) for one in alike if one.is_estimated)
            notes = f"{listed(told)}; " if told else ""
            doubts = sorted({one.robustness for one in alike} - {"robust", ""})
            of = "; ".join((_disturbance(alike), *doubts))
            yield f"{outcome.text}: {_pairs(alike)} ({notes}margin {question.margin_text}; {of})."
    for outcome in (Outcome.UNDECIDED, Outcome.NOT_JUDGED):
        by_reason: dict[str, list[Verdict]] = {}
        for one in one_of(outcome, verdicts):
            by_reason.setdefault(one.reason, []).append(one)
        yield from (f"{outcome.text}: {_pairs(found)}: {reason}{_seeds_needed(found)}." for reason, found in by_reason.items())


def _disturbance(verdicts: Sequence[Verdict]) -> str:
    """Return how many of the runs behind some verdicts were disturbed."""
    return reduce(or_, (one.disturbance for one in verdicts)).text


def _pairs(verdicts: Sequence[Verdict]) -> str:
    return "; ".join(f"{named(one.one)} and {named(one.other)}" for one in verdicts)


def _seeds_needed(verdicts: Sequence[Verdict]) -> str:
    """Return how many seeds a new experiment would need to decide these pairs; "" where nothing tells it."""
    needed = {one.seeds_to_decide for one in verdicts if one.seeds_to_decide is not None}
    if not needed:
        return ""
    seeds = f"{'at most ' if len(needed) > 1 else ''}about {counted(max(needed), 'seed')}"
    return f"; a new experiment with {seeds} would decide it, better, worse or equivalent"


def _counted(heading: str, by_scope: dict[Scope, list[Verdict]]) -> Iterator[Claim]:
    """Yield in how many of the scopes each pair has which outcome; pairs in which no one is ever better, together."""
    strategies: dict[str, dict[tuple[str, str], list[Verdict]]] = {}
    for scope, verdicts in by_scope.items():
        pairs = strategies.setdefault(with_pruner(scope.sampler, scope.pruner), {})
        for one in verdicts:
            pairs.setdefault((one.one, one.other), []).append(one)
    for strategy, pairs in strategies.items():
        apart = {names: found for names, found in pairs.items() if any(map(is_decided, found))}
        for (one_label, other), found in apart.items():
            parts = f"{', '.join(_parts(found))}; {_disturbance(found)}"
            where = f"{strategy}, {counted(len(found), 'scope')}"
            yield Claim(question=heading, where=where, text=f"{one_label} and {other}: {parts}.")
        rest = [one for names, found in pairs.items() if names not in apart for one in found]
        if rest:
            outcomes = Counter(one.outcome.text for one in rest)
            told = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
            others = "the other pairs" if apart else "all pairs"
            text = f"{others}: in no scope is one shown to be better ({told})."
            yield Claim(question=heading, where=strategy, text=text)


def _parts(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield in how many scopes a pair has each outcome: "optuna is better in 10 of 12 (9 robust)"."""
    found: dict[str, list[Verdict]] = {}
    for one in verdicts:
        better = {Outcome.BETTER: f"{one.one} is better", Outcome.WORSE: f"{one.other} is better"}
        found.setdefault(better.get(one.outcome, one.outcome.text), []).append(one)
    for words, of in sorted(found.items(), key=lambda item: -len(item[1])):
        sure = Counter(one.robustness for one in of)
        unchecked = f", {sure[UNCHECKED]} {UNCHECKED}" if sure[UNCHECKED] else ""
        robust = f" ({sure['robust']} robust{unchecked})" if is_decided(of[0]) else ""
        yield f"{words} in {len(of)} of {len(verdicts)}{robust}"


def _one_reason(verdicts: Sequence[Verdict]) -> str | None:
    """Return why nothing at all was judged, where it is the same for all."""
    reasons = {one.reason for one in verdicts}
    if all(one.outcome is Outcome.NOT_JUDGED for one in verdicts):
        return reasons.pop() if len(reasons) == 1 else "; ".join(sorted(reasons))
    return None


def _seeds(verdicts: Sequence[Verdict]) -> str:
    counts = {one.seeds for one in verdicts}
    return counted(counts.pop(), "seed") if len(counts) == 1 else f"{min(counts)} to {max(counts)} seeds"
