"""What a framework adds to a trial as a share of it, over trial length or workers: a point per column, joined by a line."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tuneoff.base.format import MISSING
from tuneoff.judge.choice.choice import SHARES, Curve, Point, Setting, share_text
from tuneoff.judge.choice.curve import place_text
from tuneoff.tell.plots.anytime import HEIGHT, WIDTH, apart
from tuneoff.tell.plots.drawing import Scale, scale
from tuneoff.tell.report.figures_table import FigureCell

LEAST = 1e-5  # share, which a smaller one is drawn at: the axis is logarithmic
FAR = 1.2  # from this factor on an axis is logarithmic
NEAR = 0.05  # of the axis: a tick this near to a level would be written over it
TITLES = {"trial_seconds": "length of a trial, s", "workers": "workers"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A point. `low`, `high`: the ends of its interval, which is none where both are `y`; `text`: in words."""

    x: float
    y: float
    low: float
    high: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A framework. `predicted`: from the first point to where the shortest trials put the last one, as SVG path data, or "".

    `cells`: the table's, by column.
    """

    label: str
    name: str
    dots: tuple[Dot, ...]
    path: str
    predicted: str
    label_y: float
    cells: tuple[FigureCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A curve in the drawing's units. `levels`: (y, text) of the shares below which what is added is called small.

    `columns`: the headings of the table that has the same figures.
    """

    curve: Curve
    x_title: str
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    levels: tuple[tuple[float, str], ...]
    lines: tuple[Line, ...]
    columns: tuple[str, ...]


def drawn(setting: Setting) -> Iterator[Drawn]:
    """Yield each curve of a setting, both axes logarithmic."""
    for curve in setting.curves:
        if (found := _drawn(curve, setting)) is not None:
            yield found


def _drawn(curve: Curve, setting: Setting) -> Drawn | None:
    names = {row.label: row.name for row in setting.rows}
    points = [point for of in curve.lines.values() for point in of]
    x = scale([point.x for point in points], FAR)
    shares = [one for point in points for one in (point.share.estimate, point.share.high)]
    shares += [point.predicted for point in points if point.predicted is not None]
    y = scale([100 * max(one, LEAST) for one in (*shares, *SHARES)], FAR)
    if x is None or y is None:
        return None
    found = {label: tuple(_dot(curve, point, names[label], x, y) for point in of) for label, of in curve.lines.items()}
    texts = apart([dots[-1].y for dots in found.values()])
    places = {x.at(point.x): f"{point.x:g}" for point in points}
    columns = {scope.text: scope.task or scope.variant for scope in setting.scopes if scope.text in {one.scope for one in points}}
    return Drawn(
        curve=curve,
        x_title=TITLES[curve.over],
        x_ticks=tuple(places.items()) if curve.over == "workers" else x.ticks,
        y_ticks=tuple((at, text) for at, text in y.ticks if all(abs(at - y.at(100 * share)) > NEAR for share in SHARES)),
        levels=tuple((_height(y, share), f"{100 * share:g} %") for share in SHARES),
        lines=tuple(
            Line(
                label=label,
                name=names[label],
                dots=dots,
                path="M" + "L".join(f"{dot.x:.1f} {dot.y:.1f}" for dot in dots),
                predicted=_predicted(dots, curve.lines[label][-1], y),
                label_y=label_y,
                cells=tuple(_cell(next((one for one in curve.lines[label] if one.scope == scope), None)) for scope in columns),
            )
            for (label, dots), label_y in zip(found.items(), texts, strict=True)
        ),
        columns=tuple(columns.values()),
    )


def _dot(curve: Curve, point: Point, name: str, x: Scale, y: Scale) -> Dot:
    share = point.share
    ends = (share.low, share.high) if _has_interval(point) else (share.estimate, share.estimate)
    cell = _cell(point)
    return Dot(
        x=WIDTH * x.at(point.x),
        y=_height(y, share.estimate),
        low=_height(y, ends[0]),
        high=_height(y, ends[1]),
        text=f"{name}, {place_text(curve, point.x)}: {cell.text}" + (f" ({cell.below})" if cell.below else ""),
    )


def _cell(point: Point | None) -> FigureCell:
    """Return a share, and below it its interval and what was predicted."""
    if point is None:
        return FigureCell(MISSING, reason="no run has the figure, or its trials take no time")
    low, high = share_text(point.share.low).removesuffix(" %"), share_text(point.share.high)
    beside = [f"{low} to {high}"] if _has_interval(point) else []
    beside += [f"predicted {share_text(point.predicted)}"] if point.predicted is not None else []
    return FigureCell(share_text(point.share.estimate), "; ".join(beside))


def _has_interval(point: Point) -> bool:
    return math.isfinite(point.share.low) and math.isfinite(point.share.high)


def _height(y: Scale, share: float) -> float:
    return HEIGHT * (1 - y.at(100 * share))


def _predicted(dots: tuple[Dot, ...], last: Point, y: Scale) -> str:
    """Where as many seconds are added to longer trials the share falls in a straight line, for both axes are logarithmic."""
    if last.predicted is None:
        return ""
    return f"M{dots[0].x:.1f} {dots[0].y:.1f}L{dots[-1].x:.1f} {_height(y, last.predicted):.1f}"
