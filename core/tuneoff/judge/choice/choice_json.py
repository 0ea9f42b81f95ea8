"""A choice as JSON values: no NaN, no infinity, and every null beside its reason."""

from __future__ import annotations

from typing import Any

from tuneoff.judge.answers.answers_json import field_values
from tuneoff.judge.choice.choice import Choice, Column, Curve, Point, Row, Setting

_NO_RUNS = "no run that is done has the metric"


def to_json(choice: Choice) -> dict[str, Any]:
    """Return the sentences, and the figures that they rest on."""
    because = {
        "deciding": "it is decided, or no reasonable number of seeds would decide it",
        "best": "no run that is done and not emulated has a validated trial",
    }
    return {
        **field_values(choice, because, without=("settings",)),
        "lines": list(choice.lines),
        "settings": [_setting(setting) for setting in choice.settings],
    }


def _setting(setting: Setting) -> dict[str, Any]:
    because = {"reference": "no framework was measured on a platform of its own"}
    return {
        **field_values(setting, because, without=("scopes", "rows", "curves")),
        "rows": [_row(row) for row in setting.rows],
        "curves": [_curve(curve) for curve in setting.curves],
    }


def _row(row: Row) -> dict[str, Any]:
    columns = {name: _column(column) for name, column in row.columns.items()}
    return {**field_values(row, without=("columns",)), "columns": columns}


def _curve(curve: Curve) -> dict[str, Any]:
    lines = {label: [_point(point) for point in points] for label, points in curve.lines.items()}
    return {**field_values(curve, without=("lines",)), "lines": lines}


def _point(point: Point) -> dict[str, Any]:
    return field_values(point, {"predicted": "these are the shortest trials, or the curve is over workers"})


def _column(column: Column) -> dict[str, Any]:
    because = {"trial_seconds": _NO_RUNS}
    return {
        **field_values(column, because, without=("scope", "group", "added")),
        "runs": [run.run_id for run in column.group.runs],
        "added": field_values(column.added, {"per_job": _NO_RUNS, "per_trial": _NO_RUNS}),
    }
