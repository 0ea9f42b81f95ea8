"""What a framework adds to a trial as a share of it, over trial length or workers: a point per column, joined by a line.

And where the time of a job goes: the parts of the run in the middle, which add up to the median that the table has.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tuneoff.base.clock import MILLISECONDS
from tuneoff.base.format import MISSING
from tuneoff.judge.answers.answer import EstimatedGroup, Question
from tuneoff.judge.choice.choice import SHARES, Curve, Point, Row, Setting, share_text
from tuneoff.judge.choice.curve import place_text
from tuneoff.tell.plots.anytime import HEIGHT, WIDTH, apart
from tuneoff.tell.plots.drawing import Scale, scale
from tuneoff.tell.report.tables import FigureCell

PARTS = {  # by the name of its colour
    "start": ("time.deploy", "time.setup"),
    "training": ("time.trial",),
    "waiting": ("time.trial",),
    "stop": ("time.result_collection", "time.metric_collection", "time.undeploy"),
    "test": ("time.test",),
}
TEXTS = {"waiting": "waiting for the framework"}
TRAINED = "slots.utilization"  # % of the trials' span in which the workers trained
LEAST = 1e-5  # share, which a smaller one is drawn at: the axis is logarithmic
FAR = 1.2  # from this factor on an axis is logarithmic
NEAR = 0.05  # of the axis: a tick this near to a level would be written over it
TITLES = {"trial_seconds": "length of a trial, s", "workers": "workers"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPart:
    """A part of a bar: `start` and `width` are shares of the longest bar."""

    name: str
    seconds: float
    start: float
    width: float

    @property
    def text(self) -> str:
        """What it is, in words."""
        return TEXTS.get(self.name, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A framework's job. `seconds`: the median job time; `seeds`: the runs in the middle, of which the parts are."""

    row: Row
    seconds: float
    seeds: tuple[int, ...]
    parts: tuple[JobPart, ...]

    @property
    def end(self) -> float:
        """Where the bar ends."""
        return max((part.start + part.width for part in self.parts), default=0.0)


def bars(rows: Sequence[Row], scope: str, time: Question) -> list[Bar]:
    """Return a bar per row that has runs with all parts in this column."""
    found = []
    for row in rows:
        group = row.columns[scope].group if scope in row.columns else None
        middle = _middle(group, time) if group is not None else ()
        if group is not None and middle:
            seconds = sum(_value(group, time.metric, seed) or 0.0 for seed in middle) / len(middle) / MILLISECONDS
            parts = _mean([parts for seed in middle if (parts := _parts(group, seed)) is not None])
            found.append((row, seconds, middle, parts))
    longest = max((sum(parts.values()) for *_, parts in found), default=0.0) or 1.0
    return [Bar(row=row, seconds=seconds, seeds=seeds, parts=_placed(parts, longest)) for row, seconds, seeds, parts in found]


def _placed(parts: Mapping[str, float], longest: float) -> tuple[JobPart, ...]:
    placed, at = [], 0.0
    for name, seconds in parts.items():
        placed.append(JobPart(name=name, seconds=seconds, start=at / longest, width=seconds / longest))
        at += seconds
    return tuple(placed)


def _middle(group: EstimatedGroup, time: Question) -> tuple[int, ...]:
    """Return the seeds of the one or two runs in the middle by job time; none where one failed or lacks a part."""
    estimate = group.estimates.get(time.metric)
    known = [(one.value, one.seed) for one in (estimate.values if estimate else ()) if one.value is not None]
    ordered = sorted([*known, *((math.inf, run.seed) for run in group.runs if run.is_failure)])
    if not ordered:
        return ()
    pair = {ordered[(len(ordered) - 1) // 2][1], ordered[len(ordered) // 2][1]}
    return tuple(sorted(pair)) if all(_parts(group, seed) is not None for seed in pair) else ()


def _parts(group: EstimatedGroup, seed: int) -> dict[str, float] | None:
    """Return the seconds of each part of a run; None where one is missing."""
    trained = _value(group, TRAINED, seed)
    totals = {name: [_value(group, metric, seed) for metric in metrics] for name, metrics in PARTS.items()}
    if trained is None or any(one is None for of_part in totals.values() for one in of_part):
        return None
    shares = {"training": trained / 100, "waiting": 1 - trained / 100}
    return {
        name: shares.get(name, 1.0) * sum(one for one in of_part if one is not None) / MILLISECONDS
        for name, of_part in totals.items()
    }


def _value(group: EstimatedGroup, metric: str, seed: int) -> float | None:
    estimate = group.estimates.get(metric)
    return next((one.value for one in (estimate.values if estimate else ()) if one.seed == seed), None)


def _mean(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: sum(parts[name] for parts in runs) / len(runs) for name in PARTS}


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
