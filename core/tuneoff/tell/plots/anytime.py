"""How good is the best configuration so far, by seconds since the job began? Only with as many seeds as a verdict needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tuneoff.judge.answers.anytime import Curve
from tuneoff.judge.answers.judging import FEWEST_SEEDS
from tuneoff.tell.plots.drawing import Scale, combined, scale, spread_out

WIDTH, HEIGHT = 640.0, 240.0  # of a panel, in the drawing's units
MOST_POINTS = 200  # of a median
MOST_PANELS = 4
STEEP = 3.0  # values that differ by more than this factor are told apart better on a logarithmic axis
LETTER = 15.0  # least distance of two labels


@dataclass(frozen=True, slots=True, kw_only=True)
class IncumbentLine:
    """The median incumbent of a framework. `path`, `band`: SVG path data; `label_y`: where its name stands; `text`: in words."""

    label: str
    name: str
    path: str
    band: str
    end: float
    end_y: float
    label_y: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One column. `metric`: what stands on the y axis, lower is better where it is an error."""

    scope: str
    metric: str
    x: Scale
    y: Scale
    lines: tuple[IncumbentLine, ...]


@dataclass(frozen=True, slots=True)
class _Median:
    label: str
    seeds: int
    points: list[tuple[float, float, float, float]]  # (s, median, better quartile, worse quartile), finite medians alone
    end: float  # s


def panels(curves: Sequence[Curve], names: Mapping[str, str], scopes: Sequence[str]) -> tuple[list[Panel], int]:
    """Return a panel per column, spread evenly over them where there are many, and how many were left out.

    `names`: of the frameworks that are shown, by label.
    """
    by_scope: dict[str, dict[str, list[Curve]]] = {scope: {} for scope in scopes}
    for curve in curves:
        group = curve.group
        if group.scope.text in by_scope and group.label in names:
            by_scope[group.scope.text].setdefault(group.label, []).append(curve)
    drawable = []
    for scope, by_label in by_scope.items():
        enough = {label: of for label, of in by_label.items() if len(of) >= FEWEST_SEEDS}
        first = next((curve for of in enough.values() for curve in of), None)
        if first is None:
            continue
        objective = first.group.spec.experiment.objective
        is_share = objective.mode == "max" and all(
            0 <= step.value <= 1 for of in enough.values() for curve in of for step in curve.steps
        )
        is_max = objective.mode == "max" and not is_share
        medians = [
            median for label, of in enough.items() if (median := _median(label, of, is_max=is_max, is_share=is_share)).points
        ]
        x = scale([value for median in medians for value in (median.points[0][0], median.end)])
        values = [value for median in medians for point in median.points for value in point[1:] if math.isfinite(value)]
        if min(values, default=-1.0) >= 0:  # an error of 0 beside greater ones is drawn at half of the least of those
            least = min((value for value in values if value > 0), default=0.0)
            values = [max(value, least / 2) for value in values]
        y = scale(values, STEEP)
        if x is None or y is None:
            continue
        lines = sorted((_line(median, x, y, names[median.label]) for median in medians), key=lambda line: line.end_y)
        name = objective.metric.replace("_", " ")
        panel = Panel(
            scope=scope,
            metric=f"error of {name} (1 − {name})" if is_share else name,
            x=x,
            y=y,
            lines=tuple(
                replace(line, label_y=label_y) for line, label_y in zip(lines, apart([line.end_y for line in lines]), strict=True)
            ),
        )
        drawable.append(panel)
    selected = [drawable[index] for index in spread_out(len(drawable), MOST_PANELS)]
    return selected, len(drawable) - len(selected)


def _median(label: str, curves: Sequence[Curve], *, is_max: bool, is_share: bool) -> _Median:
    runs = []
    for curve in curves:
        steps = curve.steps if curve.record.status == "done" else ()  # a run that failed counts as the worst value throughout
        values = {step.job_seconds: 1 - step.value if is_share else step.value for step in steps}
        runs.append(tuple(values.items()))
    starts = [(curve, curve.steps[0]) for curve in curves if curve.steps]  # else no trial completed
    ends = [curve.ends.get("seconds", 0.0) + first.job_seconds - first.seconds for curve, first in starts]
    points = combined(runs, -math.inf if is_max else math.inf, MOST_POINTS)
    return _Median(
        label=label,
        seeds=len(curves),
        points=[point for point in points if math.isfinite(point[1])],
        end=max((0.0, *ends)),
    )


def _line(median: _Median, x: Scale, y: Scale, name: str) -> IncumbentLine:
    def at(seconds: float) -> float:
        return WIDTH * x.at(seconds)

    def height(value: float) -> float:
        return HEIGHT * (1 - y.at(value))

    xs = [*(at(point[0]) for point in median.points), at(max(median.end, median.points[-1][0]))]
    middle, better, worse = ([height(point[column]) for point in median.points] for column in (1, 2, 3))
    back = _steps(xs, worse, reverse=True)
    last = median.points[-1]
    return IncumbentLine(
        label=median.label,
        name=name,
        path=f"M{_steps(xs, middle)}",
        band=f"M{_steps(xs, better)}L{back}Z",
        end=xs[-1],
        end_y=middle[-1],
        label_y=middle[-1],
        text=f"{name}: {last[1]:.4g} at the end, after {median.end:.3g} s (median of {median.seeds} runs)",
    )


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
