"""Answers, and the choice, as JSON values: no NaN, no infinity, and every null beside its reason."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap
from typing import Any

from tuneoff.base.json_values import field_values, plain, values
from tuneoff.judge.answers.answer import AcrossTasks, Answers, Verdict
from tuneoff.judge.answers.phrases import claims, sentence
from tuneoff.judge.choice.choice import Choice, Point, ScalingCurve, ScopeColumn, Setting
from tuneoff.judge.choice.curve import LEVELS
from tuneoff.judge.groups import Group
from tuneoff.judge.metrics import INSIDE, METRICS
from tuneoff.judge.results import Run

FORMAT_VERSION = 6
_NO_KIND = {"kind": None, "kind_reason_if_null": "there is no value"}
_NO_WEIGHTS = "no model's weights are in its values"
_NO_RUNS = "no run that is done has the metric"
_NO_ESTIMATE = f"{_NO_RUNS}, or most failed"
_ADDED = ("per_trial", "per_report", "reports", "epochs", "per_whole_trial")
_NO_STEP = "so few seeds show no step, however large"
_NO_BASELINE = "no baseline ran on the same platform with the same start"
_HELD_TO_NONE = {"baseline": _NO_BASELINE, "per_job": f"it is the baseline, {_NO_BASELINE}, or most runs failed"}


def to_json(answers: Answers) -> dict[str, Any]:
    """Return all answers as strict JSON values."""
    return {
        "format_version": FORMAT_VERSION,
        **field_values(answers, without=("results", "questions", "groups", "verdicts", "across")),
        "summary": list(starmap(sentence, claims(answers))),
        "questions": [field_values(question, {"margin": question.margin_text}) for question in answers.questions],
        "groups": [_group(group, [question.metric for question in answers.questions]) for group in answers.groups],
        "verdicts": [_verdict(verdict) for verdict in answers.verdicts],
        "across": [_across(across) for across in answers.across],
    }


def _group(group: Group, metrics: Sequence[str]) -> dict[str, Any]:
    names = dict.fromkeys((*metrics, *METRICS, *group.recorded(*INSIDE)))
    because = {"same_as": "its own runs stand for it", "success": "no run was tried"}
    return {
        **values(group, ("label", "adapter", "excluded", "replicate", "success", "same_as"), because),
        **field_values(group.conditions),
        "scope": group.scope.text,
        "runs": [_run(run) for run in group.runs],
        "estimates": {metric: _estimate(group, metric) for metric in names},
    }


def _run(run: Run) -> dict[str, Any]:
    because = {"execution_id": run.reason or f"it is {run.status}", "reason": "it is done"}
    return values(run, ("seed", "run_id", "execution_id", "status", "reason", "is_added", "flags"), because)


def _estimate(group: Group, metric: str) -> dict[str, Any]:
    estimate, median = group.estimate(metric), group.median(metric)
    return {
        **values(estimate, ("unit", "kinds", "reasons")),
        "median": plain(median),
        **({} if median is not None else {"median_reason_if_null": "; ".join(estimate.reasons) or "there is no run"}),
        "values": [
            {
                "seed": seed,
                **values(of, ("value", "kind"), {"value": of.reason_if_null}),
                **(_NO_KIND if of.value is None else {}),
            }
            for seed, of in estimate.values.items()
        ],
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    because = {
        "interval": verdict.reason,
        "noise_floor": "it is an A/A pair itself" if verdict.is_noise else "no entry is named twice here",
        "weights": _NO_WEIGHTS,
        "seeds_to_decide": "it is decided, or nothing tells the number",
    }
    question = field_values(verdict.question, {"margin": verdict.question.margin_text}, without=("name", "unit", "margin_text"))
    return {
        **field_values(verdict, because, without=("question", "scope", "differences", "sensitivities")),
        **question,
        "question": verdict.question.name,
        "scope": verdict.scope.text,
        "differences": [
            field_values(
                row, dict.fromkeys(("one", "other", "difference"), row.reason or "unknown") | {"reason": "both have a value"}
            )
            for row in verdict.differences
        ],
        "sensitivities": [field_values(row, {"interval": "too few seeds are left"}) for row in verdict.sensitivities],
        **values(verdict, ("robustness", "is_robust")),
    }


def _across(across: AcrossTasks) -> dict[str, Any]:
    return {
        **field_values(across, without=("question", "scope", "compared", "tasks_of", "is_regret")),
        "question": across.question.name,
        "metric": across.question.metric,
        "scope": across.scope.text,
        "compared": [
            field_values(pair, {"mean": pair.reason, "p": pair.reason, "weights": _NO_WEIGHTS}, without=("reason",))
            for pair in across.compared
        ],
    }


def choice_to_json(choice: Choice) -> dict[str, Any]:
    """Return the sentences, and the figures that they rest on."""
    because = {
        "deciding": "it is decided, or no reasonable number of seeds would decide it",
        "best": "no run that is done and in comparisons has a validated trial",
    }
    of_filters = () if choice.filters else ("filters", "refusal")
    return {
        **field_values(choice, because, without=("answers", "settings", *of_filters)),
        "lines": list(choice.lines),
        "settings": [_setting(setting) for setting in choice.settings],
    }


def _setting(setting: Setting) -> dict[str, Any]:
    because = {
        "reference": "no framework was measured on a platform of its own",
        "lengths": "nothing tells what a framework adds to a trial",
    }
    return {
        **field_values(setting, because, without=("scopes", "rows", "curves")),
        "rows": [
            {
                **field_values(row, without=("columns",)),
                "columns": {name: _column(column) for name, column in row.columns.items()},
            }
            for row in setting.rows
        ],
        "curves": [
            {
                **field_values(curve, without=("lines", "scopes", "steps", "smallest_step", "enough")),
                "lines": {label: [_point(point) for point in points] for label, points in curve.lines.items()},
                **(_steps(curve) if curve.over == "release" else {}),
                **({"enough": dict(curve.enough)} if curve.metric == LEVELS.get(curve.over, ("", ""))[1] else {}),
            }
            for curve in setting.curves
        ],
    }


def _steps(curve: ScalingCurve) -> dict[str, Any]:
    steps = [{**field_values(step, without=("verdict",)), "verdict": _verdict(step.verdict)} for step in curve.steps]
    return {"steps": steps, **values(curve, ("smallest_step",), {"smallest_step": _NO_STEP})}


def _point(point: Point) -> dict[str, Any]:
    because = {
        **dict.fromkeys(("epochs", "reports"), "the curve is not over the length of trials"),
        "predicted": "these are the shortest trials, trials of one report tell nothing of more, or the curve is over no length",
    }
    return field_values(point, because)


def _column(column: ScopeColumn) -> dict[str, Any]:
    because = {"trial_seconds": _NO_RUNS, "job_seconds": _NO_ESTIMATE}
    return {
        **field_values(column, because, without=("scope", "group", "added")),
        "runs": [run.run_id for run in column.group.runs],
        "added": field_values(column.added, dict.fromkeys(("own_per_job", *_ADDED), _NO_ESTIMATE) | _HELD_TO_NONE),
    }
