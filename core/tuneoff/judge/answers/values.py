"""Answers as JSON values: no NaN, no infinity, and every null beside its reason."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tuneoff.judge.answers.answer import (
    AcrossTasks,
    Answers,
    Estimate,
    EstimatedGroup,
    OverTasks,
    PairedDifference,
    Question,
    Sensitivity,
    Value,
    Verdict,
)
from tuneoff.judge.runs import RunRef, Scope
from tuneoff.judge.stats.interval import Interval

FORMAT_VERSION = 3
INFINITE = "infinite: {}"


def to_json(answers: Answers) -> dict[str, Any]:
    """Return all answers as strict JSON values."""
    return {
        "format_version": FORMAT_VERSION,
        "name": answers.name,
        "questions": [_question(one) for one in answers.questions],
        "scopes": [_scope(one) for one in answers.scopes],
        "groups": [_group(one) for one in answers.groups],
        "verdicts": [_verdict(one) for one in answers.verdicts],
        "across": [_across(one) for one in answers.across],
        "summary": list(answers.summary),
        "limits": list(answers.limits),
        "statuses": dict(answers.statuses),
        "family_size": answers.family_size,
        "confidence": answers.confidence,
        "looks": list(answers.looks),
        "analysis": _plain(dict(answers.analysis)),
    }


def _question(one: Question) -> dict[str, Any]:
    return {
        "name": one.name,
        "metric": one.metric,
        "unit": one.unit,
        "better": one.better,
        "scale": one.scale,
        **_number("margin", one.margin, one.margin_text),
        "margin_text": one.margin_text,
    }


def _scope(one: Scope) -> dict[str, Any]:
    return {"text": one.text, "sampler": one.sampler, "pruner": one.pruner, "variant": one.variant, "task": one.task}


def _group(one: EstimatedGroup) -> dict[str, Any]:
    return {
        "label": one.label,
        "adapter": one.adapter,
        "scope": one.scope.text,
        "emulated": one.emulated,
        "replicate": one.replicate,
        **_nullable("same_as", one.same_as, "its own runs stand for it"),
        "runs": [_run(run) for run in one.runs],
        **_interval("success", one.success, "no run was tried"),
        "cpu_limits": list(one.conditions.cpu_limits),
        "changed_defaults": list(one.conditions.changed_defaults),
        "process_per_trial": one.conditions.process_per_trial,
        "estimates": {metric: _estimate(estimate) for metric, estimate in one.estimates.items()},
    }


def _run(one: RunRef) -> dict[str, Any]:
    return {
        "seed": one.seed,
        "run_id": one.run_id,
        **_nullable("execution_id", one.execution_id, one.reason or f"it is {one.status}"),
        "status": one.status,
        **_nullable("reason", one.reason, "it is done"),
        "is_continued": one.is_continued,
        "flags": list(one.flags),
    }


def _estimate(one: Estimate) -> dict[str, Any]:
    return {
        "unit": one.unit,
        "values": [_value(value) for value in one.values],
        **_interval("median", one.median, "; ".join(one.reasons) or "there is no run"),
        "kinds": sorted(one.kinds),
        "reasons": dict(one.reasons),
    }


def _value(one: Value) -> dict[str, Any]:
    reason = one.reason or "unknown"
    return {"seed": one.seed, **_number("value", one.value, reason), **_nullable("kind", one.kind, "there is no value")}


def _verdict(one: Verdict) -> dict[str, Any]:
    return {
        "question": one.question.name,
        "metric": one.question.metric,
        "better": one.question.better,
        "scale": one.question.scale,
        **_number("margin", one.question.margin, one.question.margin_text),
        "scope": one.scope.text,
        "one": one.one,
        "other": one.other,
        "outcome": str(one.outcome),
        "reason": one.reason,
        **_interval("interval", one.interval, one.reason),
        "differences": [_difference(row) for row in one.differences],
        "failures": list(one.failures),
        "is_estimated": one.is_estimated,
        **_nullable("weights", one.weights and asdict(one.weights), "no model's weights are in its values"),
        **_interval(
            "noise_floor", one.noise_floor, "it is an A/A pair itself" if one.is_noise else "no entry is named twice here"
        ),
        "sensitivities": [_sensitivity(row) for row in one.sensitivities],
        "is_robust": one.is_robust,
        "robustness": one.robustness,
        "disturbance": one.disturbance.to_json(),
        **_nullable("seeds_to_decide", one.seeds_to_decide, "it is decided, or nothing tells the number"),
        "is_noise": one.is_noise,
    }


def _difference(one: PairedDifference) -> dict[str, Any]:
    reason = one.reason or "unknown"
    return {
        "seed": one.seed,
        **_number("one", one.one, reason),
        **_number("other", one.other, reason),
        **_number("difference", one.difference, reason),
        **_nullable("reason", one.reason, "both have a value"),
    }


def _sensitivity(one: Sensitivity) -> dict[str, Any]:
    return {"choice": one.choice, "outcome": str(one.outcome), **_interval("interval", one.interval, "too few seeds are left")}


def _across(one: AcrossTasks) -> dict[str, Any]:
    return {
        "question": one.question.name,
        "metric": one.question.metric,
        "scope": one.scope.text,
        "tasks": list(one.tasks),
        "labels": list(one.labels),
        "iqm_regret": {label: _of(interval) for label, interval in one.iqm_regret.items()},
        "improvement": [{"one": ours, "other": theirs, **_of(found)} for (ours, theirs), found in one.improvement.items()],
        "compared": [_over_tasks(pair) for pair in one.compared],
        "data_sets": list(one.data_sets),
        **_nullable("data_sets_needed", one.data_sets_needed, "no number of data sets is enough for so many pairs"),
        "ranks": {label: _plain(rank) for label, rank in one.ranks.items()},
        "texts": list(one.texts),
    }


def _over_tasks(one: OverTasks) -> dict[str, Any]:
    few = "an A/A pair is a control" if one.is_noise else one.reason or "too few independent data sets"
    return {
        "one": one.one,
        "other": one.other,
        "tasks": list(one.tasks),
        "ahead": list(one.ahead),
        "failures": list(one.failures),
        **_interval("mean", one.mean, one.reason),
        **_number("p", one.p, one.reason),
        **_interval("at_large", one.at_large, few),
        **_number("at_large_p", one.at_large_p, few),
        "disturbance": one.disturbance.to_json(),
        "without_disturbed": one.without_disturbed,
        "is_estimated": one.is_estimated,
        **_nullable("weights", one.weights and asdict(one.weights), "no model's weights are in its values"),
        "is_noise": one.is_noise,
    }


def _interval(name: str, one: Interval | None, reason: str) -> dict[str, Any]:
    return {name: None, f"{name}_reason_if_null": reason} if one is None else {name: _of(one)}


def _of(one: Interval) -> dict[str, Any]:
    return {
        **_number("estimate", one.estimate, ""),
        **_number("low", one.low, ""),
        **_number("high", one.high, ""),
        "confidence": one.confidence,
        "n": one.n,
        "method": one.method,
    }


def _number(name: str, value: float | None, reason: str) -> dict[str, Any]:
    """Return a number, or null with why there is none; an infinite one is null too, and says which way."""
    if value is None:
        return {name: None, f"{name}_reason_if_null": reason}
    if math.isfinite(value):
        return {name: value}
    return {name: None, f"{name}_reason_if_null": INFINITE.format("below any number" if value < 0 else "beyond any number")}


def _nullable(name: str, value: object, reason: str) -> dict[str, Any]:
    return {name: None, f"{name}_reason_if_null": reason} if value is None else {name: value}


def _plain(value: Any) -> Any:
    """Return JSON values with null for what JSON has no word for."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
