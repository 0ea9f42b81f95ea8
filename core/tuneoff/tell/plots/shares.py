"""A figure over trial length, workers, trials or releases: a point per column, joined by a line."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tuneoff.base.format import MISSING
from tuneoff.judge.choice.added import SHARES
from tuneoff.judge.choice.choice import Point, ScalingCurve, Setting
from tuneoff.judge.choice.curve import ADDED, BUSY, FIGURES, UTILIZATION, curve_amount, x_text
from tuneoff.judge.choice.releases import SMALLEST_STEP, shown_steps, smallest_step_text
from tuneoff.tell.plots import drawing
from tuneoff.tell.plots.anytime import HEIGHT, WIDTH, apart
from tuneoff.tell.plots.drawing import Scale, scale
from tuneoff.tell.report.tables import FigureCell

LEAST = 1e-3  # which a smaller figure is drawn at where the axis is logarithmic
FAR = 1.2  # from this factor on an axis is logarithmic
NEAR = 0.05  # of the axis: a tick this near to a level would be written over it
TITLES = {
    "trial_seconds": "length of a trial, s",
    "workers": "workers",
    "trials": "trials",
    "cpus": "vCPU of a worker",
    "memory": "memory of a worker, MB",
    "copies": "jobs at the same time",
    "release": "release",
}
LEVELS = {ADDED: tuple(100 * share for share in SHARES), UTILIZATION: (BUSY,)}  # what is called little, or a loss


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveDot:
    """A point. `low`, `high`: the ends of its interval, which is none where both are `y`; `text`: in words."""

    x: float
    y: float
    low: float
    high: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A framework. `predicted`: from the first point to where it puts the others, as SVG path data, or "".

    `cells`: the table's, by column.
    `knee`: its low end, itself and its high end, on the x axis; None without one.
    """

    label: str
    name: str
    dots: tuple[CurveDot, ...]
    path: str
    predicted: str
    label_y: float
    cells: tuple[FigureCell, ...]
    knee: tuple[float, float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveDrawing:
    """A curve in the drawing's units. `levels`: (y, text) of LEVELS; `marks`: (x, text) of the steps that are shown.

    `columns`: the headings of the table that has the same figures.
    """

    curve: ScalingCurve
    title: str
    unit: str
    x_title: str
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    levels: tuple[tuple[float, str], ...]
    marks: tuple[tuple[float, str], ...]
    lines: tuple[Line, ...]
    columns: tuple[str, ...]


def drawn(setting: Setting) -> Iterator[CurveDrawing]:
    """Yield each curve of a setting; shares are drawn on a logarithmic axis."""
    for curve in setting.curves:
        if (curve_drawing := _drawn(curve, setting)) is not None:
            yield curve_drawing


def _drawn(curve: ScalingCurve, setting: Setting) -> CurveDrawing | None:
    names = {label: label for label in curve.lines} | {row.label: row.marked for row in setting.rows}
    steps = shown_steps(curve)
    points = [point for of in curve.lines.values() for point in of]
    x = scale([point.x for point in points], FAR)
    levels = LEVELS.get(curve.metric, ())
    values = [figure for point in points for figure in (point.value.estimate, point.value.high)]
    values += [point.value.low for point in points if curve.over == "release"]
    values += [point.predicted for point in points if point.predicted is not None]
    least = -math.inf if curve.over == "release" else LEAST
    y = scale([max(figure, least) for figure in (*values, *levels)], FAR if curve.metric == ADDED else drawing.FAR)
    if x is None or y is None:
        return None
    dots_by_label = {label: tuple(_dot(curve, point, names[label], x, y) for point in of) for label, of in curve.lines.items()}
    texts = apart([dots[-1].y for dots in dots_by_label.values()])
    places = {x.at(point.x): point.scope if curve.over == "release" else f"{point.x:g}" for point in points}
    of_scope = {point.scope: x_text(curve, point) for point in sorted(points, key=lambda point: point.x)}
    if curve.over == "release":  # also one without a figure
        of_scope = {text: text for step in curve.steps for text in (step.older, step.newer)}
    if curve.over == "trial_seconds":
        of_scope = {scope.text: scope.task or scope.variant for scope in setting.scopes if scope.text in of_scope}
    return CurveDrawing(
        curve=curve,
        x_title=TITLES[curve.over],
        title=FIGURES[curve.metric][0] + (f", {curve.beside}" if curve.beside else ""),
        unit="% of a trial" if curve.metric == ADDED else FIGURES[curve.metric][1],
        x_ticks=x.ticks if curve.over == "trial_seconds" else tuple(places.items()),
        y_ticks=tuple((at, text) for at, text in y.ticks if all(abs(at - y.at(level)) > NEAR for level in levels)),
        marks=tuple((WIDTH * x.at(point.x), steps[point.scope]) for point in points if point.scope in steps),
        levels=tuple((_height(y, level), f"{level:g} %") for level in levels),
        lines=tuple(
            Line(
                label=label,
                name=names[label],
                dots=dots,
                path="M" + "L".join(f"{dot.x:.1f} {dot.y:.1f}" for dot in dots),
                predicted=_predicted(dots, curve.lines[label], y),
                label_y=label_y,
                cells=(
                    *(
                        _cell(curve, next((point for point in curve.lines[label] if point.scope == scope), None))
                        for scope in of_scope
                    ),
                    *([FigureCell(curve.limits[label].text)] if label in curve.limits else ()),
                    *([FigureCell(curve.enough.get(label, MISSING))] if curve.enough else ()),
                    *([FigureCell(smallest_step_text(curve))] if curve.over == "release" else ()),
                ),
                knee=_knee(curve, label, x),
            )
            for (label, dots), label_y in zip(dots_by_label.items(), texts, strict=True)
        ),
        columns=(
            *of_scope.values(),
            *([f"below {BUSY:g} %"] if curve.limits else ()),
            *(["enough"] if curve.enough else ()),
            *([SMALLEST_STEP] if curve.over == "release" else ()),
        ),
    )


def _dot(curve: ScalingCurve, point: Point, name: str, x: Scale, y: Scale) -> CurveDot:
    ends = (point.value.low, point.value.high) if _has_interval(point) else (point.value.estimate, point.value.estimate)
    cell = _cell(curve, point)
    return CurveDot(
        x=WIDTH * x.at(point.x),
        y=_height(y, point.value.estimate),
        low=_height(y, ends[0]),
        high=_height(y, ends[1]),
        text=f"{name}, {x_text(curve, point)}: {cell.text}" + (f" ({cell.below})" if cell.below else ""),
    )


def _knee(curve: ScalingCurve, label: str, x: Scale) -> tuple[float, float, float] | None:
    knee = curve.limits[label].knee if label in curve.limits else None
    if knee is None:
        return None
    low, high = (end if math.isfinite(end) else knee.estimate for end in (knee.low, knee.high))
    return WIDTH * x.at(max(low, x.low)), WIDTH * x.at(knee.estimate), WIDTH * x.at(high)


def _cell(curve: ScalingCurve, point: Point | None) -> FigureCell:
    """Return a figure, and below it its interval and what was predicted."""
    if point is None:
        return FigureCell(MISSING, reason="no run has the figure, or its trials take no time")
    low, high = (curve_amount(curve, end) for end in (point.value.low, point.value.high))
    beside = [f"{low.partition(' ')[0]} to {high}"] if _has_interval(point) else []
    beside += [f"predicted {curve_amount(curve, point.predicted)}"] if point.predicted is not None else []
    beside += [f"step {shown_steps(curve)[point.scope]}"] if point.scope in shown_steps(curve) else []
    return FigureCell(curve_amount(curve, point.value.estimate), "; ".join(beside))


def _has_interval(point: Point) -> bool:
    return math.isfinite(point.value.low) and math.isfinite(point.value.high)


def _height(y: Scale, value: float) -> float:
    return HEIGHT * (1 - y.at(value))


def _predicted(dots: tuple[CurveDot, ...], points: tuple[Point, ...], y: Scale) -> str:
    """Return the line of what the first point predicts: straight where reports are as many, for both axes are logarithmic."""
    predictions = [
        (dot.x, _height(y, point.predicted)) for dot, point in zip(dots, points, strict=True) if point.predicted is not None
    ]
    return "".join((f"M{dots[0].x:.1f} {dots[0].y:.1f}", *(f"L{x:.1f} {at:.1f}" for x, at in predictions))) if predictions else ""
