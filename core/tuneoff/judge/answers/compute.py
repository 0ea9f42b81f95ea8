"""All answers of a results folder."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tuneoff.judge.answers.across import across_tasks
from tuneoff.judge.answers.analysis_plan import frozen, overall
from tuneoff.judge.answers.answer import Answers
from tuneoff.judge.answers.judging import PairComparison, is_elsewhere, pairs
from tuneoff.judge.answers.phrases import floor_size, is_decided, is_within_noise
from tuneoff.judge.groups import by_scope, grouped, noise_pairs
from tuneoff.judge.results import Results


def answers(results: Results) -> Answers:
    """Return what a results folder says, of a finished matrix or of one that is at work."""
    plan = frozen(results.plan.analysis)
    groups = grouped(results, plan.confidence)
    of_scope = by_scope(groups)
    questions = {scope: plan.questions_of(in_scope[0].spec.experiment) for scope, in_scope in of_scope.items()}
    verdicts = []
    for scope, in_scope in of_scope.items():
        compared = pairs(in_scope)
        alpha = plan.alpha(len(compared))
        for question in questions[scope]:
            controls = [
                (PairComparison(again, first, question, plan.error, is_noise=True).verdict(), is_elsewhere(again, first))
                for again, first in noise_pairs(in_scope)
            ]
            intervals = [control.interval for control, _ in controls if control.interval is not None]
            floor = max(intervals, key=floor_size, default=None)
            for group, other in compared:
                result = PairComparison(group, other, question, alpha).verdict()
                reason = result.reason
                if is_decided(result) and is_within_noise(result.interval, floor):
                    reason += "; it does not exceed the noise floor: a framework differs as much from itself"
                verdicts.append(replace(result, noise_floor=floor, reason=reason))
            verdicts += [control for control, is_reported_elsewhere in controls if not is_reported_elsewhere]
    return Answers(
        results=results,
        name=results.plan.name,
        questions=overall(list(questions.values())),
        scopes=tuple(of_scope),
        groups=tuple(groups),
        verdicts=tuple(verdicts),
        across=tuple(across_tasks(of_scope, questions, plan)),
        statuses=dict(Counter(run.status for group in groups for run in group.runs)),
        family_size=plan.family_size,
        confidence=plan.confidence,
        analysis=results.plan.analysis,
    )
