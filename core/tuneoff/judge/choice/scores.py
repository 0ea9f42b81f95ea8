"""One score over the tasks of a setting, by the weights that its file froze, and what a result costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from tuneoff.base.format import ESTIMATED, MISSING, figure, listed, number, shown_unit
from tuneoff.judge.choice.choice import Row
from tuneoff.judge.results import Scope, value

COST, GOAL = "cost.job_without_test", "goal.seconds"


def score_lines(rows: Sequence[Row], reference: str | None, weights: Mapping[str, float]) -> Iterator[str]:
    """Yield the scores where there are weights, and the prices there and where runs end at a goal."""
    measured = [row for row in rows if not row.excluded and row.has_done]
    stops = any(column.group.spec.experiment.objective.stop for row in measured for column in row.columns.values())
    base = next((row for row in measured if row.label == reference), None)
    scopes = tuple(dict.fromkeys(column.scope for row in measured for column in row.columns.values()))
    if weights and base is not None:
        scores = [(row.name, score(row, base, weights, scopes)) for row in measured]
        texts = ", ".join(f"{name} {MISSING if of is None else number(of)}" for name, of in scores)
        by = listed(f"{task} {weight:g}" for task, weight in weights.items())
        mean = f"geometric mean of the tasks' speed against {base.name}, weights {by}, others 1"
        yield f"Score ({mean}; {MISSING}: a task without a ratio): {texts}."
    if (weights and base is not None) or stops:
        prices = [(row.name, *price(row, weights, scopes)) for row in measured]
        _, factor = shown_unit("USD")
        costs = (f"{name} {MISSING if of is None else mark + figure(of * factor)}" for name, of, mark in prices)
        result = "run that met its goal" if stops else "run that is done"
        yield f"Price in mUSD of a result (of all runs, per {result}; {MISSING}: no such run): {', '.join(costs)}."


def score(row: Row, base: Row, weights: Mapping[str, float], scopes: Sequence[Scope]) -> float | None:
    """Return the weighted geometric mean of its job's speed over the base's, task by task; None where a task has no ratio."""
    logs = total = 0.0
    for scope in scopes:
        weight = weights.get(scope.task, 1.0)
        ratio = row.columns[scope.text].ratios.get(base.label) if scope.text in row.columns else None
        times = 1.0 if row is base and scope.text in row.columns else ratio.estimate if ratio is not None else 0.0
        if not 0 < times < math.inf:
            return None
        logs, total = logs - weight * math.log(times), total + weight
    return math.exp(logs / total)


def price(row: Row, weights: Mapping[str, float], scopes: Sequence[Scope]) -> tuple[float | None, str]:
    """Return the weighted mean over the tasks of USD per result, and the mark of an estimate; None where a task has no result."""
    if len(row.columns) < len(scopes):
        return None, ""
    usd = total = 0.0
    for column in row.columns.values():
        runs = [run for run in column.group.unskipped if run.has_ended]
        costs = [cost for run in runs if (cost := run.number(COST)) is not None]
        must_meet = column.group.spec.experiment.objective.stop
        results = sum(run.is_done and (not must_meet or value(run, GOAL).value is not None) for run in runs)
        if not results or len(costs) < len(runs):
            return None, ""
        weight = weights.get(column.scope.task, 1.0)
        usd, total = usd + weight * sum(costs) / results, total + weight
    is_estimated = any(column.group.estimate(COST).is_estimated for column in row.columns.values())
    return usd / total, ESTIMATED if is_estimated else ""
