"""What was shown between the frameworks of a setting, by its verdicts or by the claims over tasks, and how robust that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from operator import or_

from tuneoff.base.clock import MILLISECONDS
from tuneoff.judge.answers.answer import HOLDS, ROBUST, Answers, Outcome, OverTasks, Question, Verdict
from tuneoff.judge.answers.phrases import median_difference, ratio_of
from tuneoff.judge.choice.choice import Ratio
from tuneoff.judge.runs import Disturbance, Scope
from tuneoff.judge.stats.location import middle


class Shown:
    """The outcomes between the frameworks of a setting; `scopes`: its columns."""

    def __init__(self, answers: Answers, scopes: Sequence[Scope]) -> None:
        self._answers = answers
        self._scopes = scopes
        self._error = 1 - answers.confidence
        self._verdicts = {
            (verdict.question.name, verdict.scope, frozenset((verdict.one, verdict.other))): verdict
            for verdict in answers.verdicts
            if verdict.scope in scopes and not verdict.is_noise
        }

    def outcome(self, question: Question, label: str, other: str) -> Outcome:
        """Return what holds of `label` against `other`: of several columns the claim over tasks, or what all columns agree in."""
        if len(self._scopes) > 1 and (found := self._over_tasks(question, label, other)) is not None:
            return found
        outcomes = [self._in_column(question, scope, label, other) for scope in self._scopes]
        known = {outcome for outcome in outcomes if outcome is not None}
        if not known or known == {Outcome.NOT_JUDGED}:
            return Outcome.NOT_JUDGED
        return known.pop() if len(known) == 1 else Outcome.UNDECIDED

    def support(self, question: Question, label: str, other: str) -> tuple[set[str], Disturbance]:
        """Return how robust it is what `outcome` says, in words, and which of its runs other programs disturbed."""
        if len(self._scopes) > 1 and (pair := self._pair(question, label, other)) is not None:
            found, _ = pair
            return {found.without_disturbed if found.without_disturbed not in ("", HOLDS) else ROBUST}, found.disturbance
        keys = [(question.name, scope, frozenset((label, other))) for scope in self._scopes]
        verdicts = [self._verdicts[key] for key in keys if key in self._verdicts]
        return {one.robustness for one in verdicts}, reduce(or_, (one.disturbance for one in verdicts), Disturbance())

    def is_by_failures(self, question: Question, label: str, other: str) -> bool:
        """Tell whether failed runs decide between two in any of their columns, over tasks in all: no time says who is better."""
        keys = [(question.name, scope, frozenset((label, other))) for scope in self._scopes]
        decided = [self._verdicts[key].is_by_failures for key in keys if key in self._verdicts]
        is_over_tasks = len(self._scopes) > 1 and self._pair(question, label, other) is not None
        return bool(decided) and (all(decided) if is_over_tasks else any(decided))

    def ratios(self, question: Question, scope: Scope, labels: Sequence[str]) -> dict[str, dict[str, Ratio]]:
        """Return by label and other label how many times as long the one takes in a column."""
        found: dict[str, dict[str, Ratio]] = {label: {} for label in labels}
        for (name, of, _), verdict in self._verdicts.items():
            if (name, of) == (question.name, scope):
                for label, other in ((verdict.one, verdict.other), (verdict.other, verdict.one)):
                    ratio = _ratio(verdict, label)
                    if label in found and ratio is not None:
                        found[label][other] = ratio
        return found

    def _in_column(self, question: Question, scope: Scope, label: str, other: str) -> Outcome | None:
        verdict = self._verdicts.get((question.name, scope, frozenset((label, other))))
        return verdict.outcome_for(label) if verdict is not None else None

    def _over_tasks(self, question: Question, label: str, other: str) -> Outcome | None:
        found = self._pair(question, label, other)
        return self._of_pair(found[0], label, found[1]) if found is not None else None

    def _pair(self, question: Question, label: str, other: str) -> tuple[OverTasks, str] | None:
        """Return the claim over tasks, and whether less or more is better there."""
        for one in self._answers.across:
            same = (one.scope.sampler, one.scope.pruner) == (self._scopes[0].sampler, self._scopes[0].pruner)
            if not same or one.question.name != question.name:
                continue
            for pair in one.compared:
                if not pair.is_noise and {pair.one, pair.other} == {label, other} and pair.mean is not None:
                    return pair, "min" if one.is_regret else question.better
        return None

    def _of_pair(self, pair: OverTasks, label: str, better: str) -> Outcome:
        if pair.p is None or pair.p > self._error or pair.mean is None:
            return Outcome.UNDECIDED
        one_is_better = (pair.mean.estimate < 0) == (better == "min")
        return Outcome.BETTER if one_is_better == (label == pair.one) else Outcome.WORSE


def _ratio(verdict: Verdict, label: str) -> Ratio | None:
    """Return the ratio of a verdict on the ratio scale, as it is for `label`; None where a run failed, or no seed is in both."""
    sign = 1 if label == verdict.one else -1
    differences = [sign * one.difference for one in verdict.differences if one.difference is not None]
    if not differences or any(verdict.failures) or verdict.question.scale != "ratio":
        return None
    judged = verdict.interval if verdict.outcome is not Outcome.NOT_JUDGED else None
    if judged is not None:
        ends, estimate = sorted((sign * judged.low, sign * judged.high)), sign * judged.estimate
    else:
        ends, estimate = [min(differences), max(differences)], middle(differences)
    seconds = median_difference(verdict)
    return Ratio(
        estimate=ratio_of(estimate),
        low=ratio_of(ends[0]),
        high=ratio_of(ends[1]),
        is_interval=judged is not None,
        difference_s=sign * seconds / MILLISECONDS if seconds is not None else math.nan,
        outcome=verdict.outcome_for(label),
    )
