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
from tuneoff.judge.results import Disturbance, Scope
from tuneoff.judge.stats.location import middle


class PairEvidence:
    """The outcomes between the frameworks of a setting; `scopes`: its columns."""

    def __init__(self, answers: Answers, scopes: Sequence[Scope]) -> None:
        self.answers = answers
        self.scopes = scopes
        self._error = 1 - answers.confidence
        self._verdicts = {
            (verdict.question.name, verdict.scope, frozenset((verdict.one, verdict.other))): verdict
            for verdict in answers.verdicts
            if verdict.scope in scopes and not verdict.is_noise
        }

    def outcome(self, question: Question, label: str, other: str) -> Outcome:
        """Return what holds of `label` against `other`: of several columns the claim over tasks, or what all columns agree in."""
        if (pair := self._pair(question, label, other)) is not None:
            claim, better = pair
            if claim.p is None or claim.p > self._error or claim.mean is None:
                return Outcome.UNDECIDED
            one_is_better = (claim.mean.estimate < 0) == (better == "min")
            return Outcome.BETTER if one_is_better == (label == claim.one) else Outcome.WORSE
        distinct = {verdict.outcome_for(label) for verdict in self._by_column(question, label, other)}
        if not distinct or distinct == {Outcome.NOT_JUDGED}:
            return Outcome.NOT_JUDGED
        return distinct.pop() if len(distinct) == 1 else Outcome.UNDECIDED

    def support(self, question: Question, label: str, other: str) -> tuple[set[str], Disturbance]:
        """Return how robust it is what `outcome` says, in words, and which of its runs other programs disturbed."""
        if (pair := self._pair(question, label, other)) is not None:
            claim, _ = pair
            return {claim.without_disturbed if claim.without_disturbed not in ("", HOLDS) else ROBUST}, claim.disturbance
        verdicts = self._by_column(question, label, other)
        return {verdict.robustness for verdict in verdicts}, reduce(
            or_, (verdict.disturbance for verdict in verdicts), Disturbance()
        )

    def is_by_failures(self, question: Question, label: str, other: str) -> bool:
        """Tell whether failed runs decide between two in any of their columns, over tasks in all: no time says who is better."""
        decided = [verdict.is_by_failures for verdict in self._by_column(question, label, other)]
        return bool(decided) and (any(decided) if self._pair(question, label, other) is None else all(decided))

    def ratios(self, question: Question, scope: Scope, labels: Sequence[str]) -> dict[str, dict[str, Ratio]]:
        """Return by label and other label how many times as long the one takes in a column."""
        ratios: dict[str, dict[str, Ratio]] = {label: {} for label in labels}
        for (name, verdict_scope, _), verdict in self._verdicts.items():
            if (name, verdict_scope) == (question.name, scope):
                for label, other in ((verdict.one, verdict.other), (verdict.other, verdict.one)):
                    ratio = _ratio(verdict, label)
                    if label in ratios and ratio is not None:
                        ratios[label][other] = ratio
        return ratios

    def _by_column(self, question: Question, label: str, other: str) -> list[Verdict]:
        keys = [(question.name, scope, frozenset((label, other))) for scope in self.scopes]
        return [self._verdicts[key] for key in keys if key in self._verdicts]

    def _pair(self, question: Question, label: str, other: str) -> tuple[OverTasks, str] | None:
        """Return the claim over tasks, and whether less or more is better there; None with one column or without a claim."""
        for across in self.answers.across if len(self.scopes) > 1 else ():
            same = (across.scope.sampler, across.scope.pruner) == (self.scopes[0].sampler, self.scopes[0].pruner)
            if not same or across.question.name != question.name:
                continue
            for pair in across.compared:
                if not pair.is_noise and {pair.one, pair.other} == {label, other} and pair.mean is not None:
                    return pair, "min" if across.is_regret else question.better
        return None


def _ratio(verdict: Verdict, label: str) -> Ratio | None:
    """Return the ratio of a verdict on the ratio scale, as it is for `label`; None where a run failed, or no seed is in both."""
    differences = [row.difference for row in verdict.differences if row.difference is not None]
    if not differences or any(verdict.failures) or verdict.question.scale != "ratio":
        return None
    judged = verdict.interval if verdict.outcome is not Outcome.NOT_JUDGED else None
    ends = (min(differences), middle(differences), max(differences))
    if judged is not None:
        ends = (judged.low, judged.estimate, judged.high)
    sign, milliseconds = 1 if label == verdict.one else -1, median_difference(verdict)
    low, estimate, high = map(ratio_of, sorted(sign * end for end in ends))
    return Ratio(
        estimate=estimate,
        low=low,
        high=high,
        is_interval=judged is not None,
        difference_s=sign * milliseconds / MILLISECONDS if milliseconds is not None else math.nan,
        outcome=verdict.outcome_for(label),
    )
