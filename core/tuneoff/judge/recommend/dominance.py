"""Who dominates whom in a scope, by verdicts alone: pure functions.

One dominates another if it is better in at least one question, shown to be not worse in every other one, and failed no more
often. Undecided and not judged show nothing, so they let nothing dominate; a question of which a pair has no figures in any
seed says nothing of that pair. Every dominance is of a pair: a further adapter changes none between others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuneoff.judge.answers.answer import Outcome, Verdict

_NOT_WORSE = (Outcome.BETTER, Outcome.EQUIVALENT, Outcome.EQUIVALENT_THOUGH_DIFFERENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dominance:
    """`one` dominates `other`: by question, the verdicts in which it is better and those in which it is as good."""

    one: str
    other: str
    better: tuple[Verdict, ...]
    as_good: tuple[Verdict, ...]
    without_figures: tuple[str, ...] = ()  # questions


def has_figures(verdict: Verdict) -> bool:
    """Tell whether some seed has something to compare."""
    return any(pair.difference is not None for pair in verdict.differences)


def between(verdicts: Sequence[Verdict], one: str, other: str) -> list[Verdict]:
    """Return the verdicts of a pair, whichever is named first; none of equal entries."""
    return [verdict for verdict in verdicts if not verdict.is_noise and {verdict.one, verdict.other} == {one, other}]


def dominances(verdicts: Sequence[Verdict], labels: Sequence[str], failures: Mapping[str, int]) -> list[Dominance]:
    """Return every dominance between the labels in one scope. `failures`: runs by label that were tried and came to nothing."""
    found = []
    for one in labels:
        for other in labels:
            if one != other:
                dominance = _dominance(between(verdicts, one, other), one, other)
                if dominance is not None and failures.get(one, 0) <= failures.get(other, 0):
                    found.append(dominance)
    return found


def front(labels: Sequence[str], found: Sequence[Dominance]) -> list[str]:
    """Return the labels that nobody dominates; who dominates its own dominator, over others, is dominated by nobody."""
    below = {label: _reached(label, found) for label in labels}
    return [label for label in labels if not any(label in below[one] and one not in below[label] for one in labels)]


def _dominance(verdicts: Sequence[Verdict], one: str, other: str) -> Dominance | None:
    telling = [verdict for verdict in verdicts if has_figures(verdict)]
    outcomes = [verdict.outcome_for(one) for verdict in telling]
    if Outcome.BETTER not in outcomes or any(outcome not in _NOT_WORSE for outcome in outcomes):
        return None
    return Dominance(
        one=one,
        other=other,
        better=tuple(verdict for verdict, outcome in zip(telling, outcomes, strict=True) if outcome is Outcome.BETTER),
        as_good=tuple(verdict for verdict, outcome in zip(telling, outcomes, strict=True) if outcome is not Outcome.BETTER),
        without_figures=tuple(verdict.question.name for verdict in verdicts if not has_figures(verdict)),
    )


def _reached(label: str, found: Sequence[Dominance]) -> set[str]:
    """Return whom a label dominates, directly or over others."""
    reached: set[str] = set()
    ahead = [label]
    while ahead:
        place = ahead.pop()
        new = {one.other for one in found if one.one == place} - reached
        reached |= new
        ahead += new
    return reached
