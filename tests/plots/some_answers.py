"""Answers without statistics, for plots: groups as the plan has them, differences of every pair, intervals as wide as the data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from tuneoff.answers.model import Answers, Group, Outcome, PairedDifference, Question, RunRef, Scope, Verdict
from tuneoff.answers.results import Results
from tuneoff.experiment.names import emulated_label, strategy_text, variant_text
from tuneoff.matrix.plan import PlannedRun
from tuneoff.stats.interval import Interval

QUESTIONS = (
    Question(
        name="quality",
        metric="quality.test",
        unit="test_accuracy",
        better="max",
        scale="difference",
        margin=0.01,
        margin_text="0.01",
    ),
    Question(name="time", metric="time.jct", unit="ms", better="min", scale="ratio", margin=math.log(1.05), margin_text="5 %"),
    Question(
        name="energy",
        metric="energy.per_completed_trial",
        unit="J",
        better="min",
        scale="ratio",
        margin=math.log(1.05),
        margin_text="5 %",
    ),
    Question(
        name="cost",
        metric="cost.per_completed_trial",
        unit="USD",
        better="min",
        scale="ratio",
        margin=None,
        margin_text="none: the file states none",
    ),
)


def some_answers(results: Results, analysis: Mapping[str, Any] | None = None, **changes: Any) -> Answers:
    """Return answers of a folder; `changes` replace fields."""
    groups = _groups(results)
    scopes = tuple(dict.fromkeys(group.scope for group in groups))
    verdicts = [
        _verdict(results, question, scope, one, other)
        for scope in scopes
        for question in QUESTIONS
        for one, other in combinations([group for group in groups if group.scope == scope and not group.emulated], 2)
    ]
    statuses: dict[str, int] = {}
    for group in groups:
        for run in group.runs:
            statuses[run.status] = statuses.get(run.status, 0) + 1
    values: dict[str, Any] = {
        "name": results.plan.name,
        "questions": QUESTIONS,
        "scopes": scopes,
        "groups": tuple(groups),
        "verdicts": tuple(verdicts),
        "across": (),
        "summary": (),
        "limits": (),
        "statuses": statuses,
        "family_size": 15,
        "confidence": 0.95,
        "looks": (),
        "analysis": dict(analysis or {}),
    }
    return Answers(**{**values, **changes})


def _groups(results: Results) -> list[Group]:
    found: dict[tuple[Scope, str], list[PlannedRun]] = {}
    for run in results.planned:
        experiment = run.spec.experiment
        variant, task = variant_text(experiment.variant), str(experiment.variant.get("task", ""))
        text = strategy_text(experiment) + (f" {variant}" if variant else "")
        scope = Scope(sampler=experiment.sampler.name, pruner=experiment.pruner.name, variant=variant, task=task, text=text)
        label = emulated_label(run.label, run.spec) if run.emulated else run.label
        found.setdefault((scope, label), []).append(run)
    return [
        Group(
            label=label,
            adapter=runs[0].spec.adapter,
            scope=scope,
            emulated=runs[0].emulated,
            replicate=runs[0].spec.replicate,
            runs=tuple(_ref(results, run) for run in runs),
            success=None,
            estimates={},
            same_as=runs[0].same_as,
        )
        for (scope, label), runs in found.items()
    ]


def _ref(results: Results, run: PlannedRun) -> RunRef:
    record = results.standing.get(run.run_id)
    status = "skipped" if run.skip_reason else "planned" if record is None else record.status
    return RunRef(
        seed=run.spec.seed,
        run_id=run.run_id,
        execution_id=None if record is None else record.execution_id,
        status=status,
        reason=run.skip_reason or (record.reason if record is not None else None),
        is_continued=record is not None and record.continues is not None,
    )


def _verdict(results: Results, question: Question, scope: Scope, one: Group, other: Group) -> Verdict:
    by_seed = {run.seed: run for run in other.runs}
    differences = [_difference(results, question, run, by_seed[run.seed]) for run in one.runs if run.seed in by_seed]
    return Verdict(
        question=question,
        scope=scope,
        one=one.label,
        other=other.label,
        outcome=Outcome.NOT_JUDGED,
        reason="too few seeds",
        interval=_interval([item.difference for item in differences if item.difference is not None]),
        differences=tuple(differences),
        is_noise=one.adapter == other.adapter,
    )


def _difference(results: Results, question: Question, one: RunRef, other: RunRef) -> PairedDifference:
    values = [_value(results, question, run) for run in (one, other)]
    difference: float | None = None
    if one.is_failure != other.is_failure:
        sign = 1 if question.better == "min" else -1
        difference = sign * (math.inf if one.is_failure else -math.inf)
    elif values[0] is not None and values[1] is not None:
        difference = (
            values[0] - values[1]
            if question.scale == "difference"
            else math.log(values[0] / values[1])
            if min(values[0], values[1]) > 0
            else None
        )
    return PairedDifference(seed=one.seed, one=values[0], other=values[1], difference=difference)


def _value(results: Results, question: Question, run: RunRef) -> float | None:
    record = results.standing.get(run.run_id)
    found = record.metrics.get(question.metric) if record is not None and run.status == "done" else None
    return None if found is None else found.value


def _interval(values: Sequence[float]) -> Interval | None:
    if len(values) < 2:
        return None
    ordered = sorted(values)
    return Interval(
        estimate=ordered[len(ordered) // 2], low=ordered[0], high=ordered[-1], confidence=0.95, n=len(ordered), method="range"
    )
