"""How good is the best configuration so far, by seconds since the job began? Only with as many seeds as a verdict needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tuneoff.judge.answers.anytime import Curve
from tuneoff.judge.answers.judging import FEWEST_SEEDS
from tuneoff.tell.plots.drawing import Scale, combined, scale, spread_out

WIDTH, HEIGHT = 640.0, 240.0  # of a panel, in the drawing's units
MOST_POINTS = 200  # of a median
MOST_PANELS = 4
STEEP = 3.0  # values that differ by more than this factor are told apart better on a logarithmic axis
LETTER = 15.0  # least distance of two labels


class IncumbentLine(NamedTuple):
    """The median incumbent of a framework. `path`, `band`: SVG path data; `label_y`: where its name stands; `text`: in words."""

    label: str
    name: str
    path: str
    band: str
    end: float
    end_y: float
    label_y: float
    text: str


class Panel(NamedTuple):
    """One column. `metric`: what stands on the y axis, lower is better where it is an error."""

    scope: str
    metric: str
    x: Scale
    y: Scale
    lines: tuple[IncumbentLine, ...]


def panels(curves: Sequence[Curve], names: Mapping[str, str], scopes: Sequence[str]) -> tuple[list[Panel], int]:
    """Return a panel per column, spread evenly over them where there are many, and how many were left out.

    `names`: of the frameworks that are shown, by label.
    """
    by_scope: dict[str, dict[str, list[Curve]]] = {scope: {} for scope in scopes}
    for curve in curves:
        group = curve.group
        if group.scope.text in by_scope and group.label in names:
            by_scope[group.scope.text].setdefault(group.label, []).append(curve)
    drawable = [panel for scope, of in by_scope.items() if (panel := _panel(scope, of, names)) is not None]
    selected = [drawable[index] for index in spread_out(len(drawable), MOST_PANELS)]
    return selected, len(drawable) - len(selected)


def _panel(scope: str, by_label: Mapping[str, Sequence[Curve]], names: Mapping[str, str]) -> Panel | None:
    enough = {label: of for label, of in by_label.items() if len(of) >= FEWEST_SEEDS}
    every = [curve for of in enough.values() for curve in of]
    if not every:
        return None
    objective = every[0].group.spec.experiment.objective
    is_share = objective.mode == "max" and all(0 <= step.value <= 1 for curve in every for step in curve.steps)
    worst = -math.inf if objective.mode == "max" and not is_share else math.inf
    medians = {label: points for label, of in enough.items() if (points := _median(of, worst, is_share=is_share))}
    ends = {}  # s, of the last job of each framework in which a trial completed
    for label in medians:
        starts = [(curve, curve.steps[0]) for curve in enough[label] if curve.steps]
        ends[label] = max(curve.ends.get("seconds", 0.0) + first.job_seconds - first.seconds for curve, first in starts)
    x = scale([seconds for label, points in medians.items() for seconds in (points[0][0], ends[label])])
    values = [value for points in medians.values() for point in points for value in point[1:] if math.isfinite(value)]
    if min(values, default=-1.0) >= 0:  # an error of 0 beside greater ones is drawn at half of the least of those
        least = min((value for value in values if value > 0), default=0.0)
        values = [max(value, least / 2) for value in values]
    y = scale(values, STEEP)
    if x is None or y is None:
        return None
    heights = {label: [[HEIGHT * (1 - y.at(value)) for value in point[1:]] for point in of] for label, of in medians.items()}
    ordered = sorted(medians, key=lambda label: heights[label][-1][0])
    lines = []
    for label, label_y in zip(ordered, apart([heights[label][-1][0] for label in ordered]), strict=True):
        points, name = medians[label], names[label]
        xs = [WIDTH * x.at(seconds) for seconds in (*(point[0] for point in points), max(ends[label], points[-1][0]))]
        middle, better, worse = zip(*heights[label], strict=True)
        band = f"M{_steps(xs, better)}L{_steps(xs, worse, reverse=True)}Z"
        after = f"after {ends[label]:.3g} s (median of {len(enough[label])} runs)"
        text = f"{name}: {points[-1][1]:.4g} at the end, {after}"
        lines.append(IncumbentLine(label, name, f"M{_steps(xs, middle)}", band, xs[-1], middle[-1], label_y, text))
    metric = objective.metric.replace("_", " ")
    return Panel(scope, f"error of {metric} (1 − {metric})" if is_share else metric, x, y, tuple(lines))


def _median(curves: Sequence[Curve], worst: float, *, is_share: bool) -> list[tuple[float, float, float, float]]:
    """Return (s, median, better quartile, worse quartile) at each improvement, from the first finite median on."""
    runs = []
    for curve in curves:
        steps = curve.steps if curve.record.status == "done" else ()  # a run that failed counts as the worst value throughout
        values = {step.job_seconds: 1 - step.value if is_share else step.value for step in steps}
        runs.append(tuple(values.items()))
    return [point for point in combined(runs, worst, MOST_POINTS) if math.isfinite(point[1])]


def _steps(xs: Sequence[float], ys: Sequence[float], *, reverse: bool = False) -> str:
    """Return the corners of a step function; the last x is where it ends."""
    corners = []
    for index, y in enumerate(ys):
        corners += [(xs[index], y), (xs[index + 1], y)]
    return "L".join(f"{x:.1f} {y:.1f}" for x, y in (reversed(corners) if reverse else corners))


def apart(places: Sequence[float]) -> list[float]:
    """Return where the labels of lines stand that end at these heights: in their order, apart from each other."""
    label_heights = dict.fromkeys(range(len(places)), 0.0)
    at = -math.inf
    room = HEIGHT - LETTER * (len(places) - 1)
    for number, line in enumerate(sorted(label_heights, key=lambda line: places[line])):
        at = label_heights[line] = max(min(places[line], room + LETTER * number), at + LETTER)
    return list(label_heights.values())
