"""How good is the best configuration so far, after so many trials and after so many seconds?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from tuneoff.base.format import counted
from tuneoff.judge.answers.anytime import Clock, Curve
from tuneoff.judge.runs import Scope
from tuneoff.tell.plots.canvas import end_marker, line_key, value_scale
from tuneoff.tell.plots.clocks import CLOCKS, panels, sheet_of, time_axis
from tuneoff.tell.plots.drawing import Drawing
from tuneoff.tell.plots.made import Row, made
from tuneoff.tell.plots.steps import at, combined
from tuneoff.tell.plots.texts import value_text
from tuneoff.tell.plots.theme import Style
from tuneoff.tell.plots.view import View

MOST_POINTS = 400  # of a median
BAND_FROM = 10  # runs: below, each run is a thin line
Points = tuple[tuple[float, float, float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The incumbents of a group on one clock, and their median."""

    scope: Scope
    label: str
    clock: Clock
    metric: str
    is_max: bool
    seeds: tuple[tuple[int, tuple[tuple[float, float], ...]], ...]  # (seed, steps); a run that failed has none
    points: Points  # (x, median, lower quartile, upper quartile)
    end: float  # of its longest run
    is_thinned: bool = False  # its median has more points than are drawn

    @property
    def is_drawn(self) -> bool:
        return any(math.isfinite(median) for _, median, _, _ in self.points)

    @property
    def best(self) -> float:
        """The median at the end."""
        return self.points[-1][1]


def draw(view: View) -> Drawing | None:
    """Draw the median incumbent of each adapter on both clocks, a row of panels per scope."""
    scopes, note = view.scopes()
    lines = [line for scope in scopes for line in _lines(view, scope)]
    shown = [scope for scope in scopes if any(line.scope == scope and line.is_drawn for line in lines)]
    if not shown:
        return None
    labels = list(dict.fromkeys(line.label for line in lines if line.is_drawn))
    question = "How good is the best configuration so far, by trials and by seconds?"
    sheet = sheet_of(question, shown, [line_key(view.style(label)) for label in labels])
    table: list[Row] = []
    for scope, clock, axes, is_first in panels(sheet, shown):
        mine = [line for line in lines if line.scope == scope and line.clock == clock and line.is_drawn]
        if not mine:  # all were continued, so that they have no seconds
            axes.remove()
            continue
        scale = [line for line in lines if line.scope == scope and line.clock == "trials" and line.is_drawn] or mine
        table += _panel(view, axes, mine, scale)
        if is_first:
            axes.set_ylabel(_metric(mine[0].metric))
    caption = (
        "The median over seeds of the best validation value so far, as steps; the band holds the middle half of the runs, thin "
        "lines are single runs where there are fewer than ten. A run that failed counts as the worst value throughout. "
        "The first epochs of the first trials lie outside of the panels by seconds."
    )
    return made(
        sheet,
        "anytime",
        caption=caption,
        parts=[_said(view, line, single=len(shown) == 1) for line in lines if line.scope in shown],
        columns=("scope", "adapter", "clock", "seed", "x", "value", "lower_quartile", "upper_quartile"),
        rows=table,
        notes=(
            note,
            _no_incumbent(view, lines),
            f"Medians that change at more than {MOST_POINTS} points are thinned to as many of them, each exact."
            if any(line.is_thinned for line in lines if line.is_drawn)
            else "",
        ),
    )


def _lines(view: View, scope: Scope) -> list[Line]:
    return [
        line
        for label, mine in view.curves(scope).items()
        for clock in CLOCKS
        if (line := _line(scope, label, mine, clock)) is not None
    ]


def _line(scope: Scope, label: str, curves: Sequence[Curve], clock: Clock) -> Line | None:
    """Return the median of the runs that have this clock; a failed run has no step."""
    there = [curve for curve in curves if clock in curve.ends or curve.status != "done"]
    if not there:
        return None
    is_max = there[0].mode == "max"
    seeds = tuple((curve.seed, _steps(curve, clock)) for curve in there)
    return Line(
        scope=scope,
        label=label,
        clock=clock,
        metric=there[0].metric,
        is_max=is_max,
        seeds=seeds,
        points=tuple(combined([steps for _, steps in seeds], -math.inf if is_max else math.inf, MOST_POINTS)),
        is_thinned=len({x for _, steps in seeds for x, _ in steps}) > MOST_POINTS,
        end=max(curve.ends.get(clock, 0.0) for curve in there),
    )


def _steps(curve: Curve, clock: Clock) -> tuple[tuple[float, float], ...]:
    """Return where a run's incumbent changed, of changes at the same place the last."""
    if curve.status != "done":
        return ()
    return tuple({at: step.value for step in curve.steps if (at := step.at(clock)) is not None}.items())


def _panel(view: View, axes: Axes, lines: Sequence[Line], scale: Sequence[Line]) -> list[Row]:
    """Draw the lines of a panel, and return what is drawn; the y axis is that of the lines of `scale`.

    Both clocks of a scope have one: the first epochs of the first trials, which only the seconds show, lie outside of it.
    """
    values = [value for line in scale for _, steps in line.seeds for _, value in steps]
    values += [value for line in scale for point in line.points for value in point[1:]]
    low, high = value_scale(axes, values, is_max=lines[0].is_max)
    starts = [x for line in lines for x, median, _, _ in line.points if math.isfinite(median)]
    ends = [max(line.end, line.points[-1][0]) for line in lines]
    time_axis(axes, lines[0].clock, starts, ends)
    table: list[Row] = []
    for line in lines:
        table += _draw_line(axes, line, view.style(line.label), view.label(line.label), low if line.is_max else high)
    return table


def _draw_line(axes: Axes, line: Line, style: Style, label: str, worst: float) -> list[Row]:
    table: list[Row] = []
    end = max(line.end, line.points[-1][0])
    few = len(line.seeds) < BAND_FROM
    head = (line.scope.text, label, line.clock)
    if few and len(line.seeds) > 1:
        for seed, steps in line.seeds:
            if steps:
                xs, ys = [x for x, _ in steps], [value for _, value in steps]
                axes.step([*xs, end], [*ys, ys[-1]], where="post", color=style.colour, lw=0.6, alpha=0.6)
                table += [(*head, seed, x, value, None, None) for x, value in steps]
    points = [point for point in line.points if math.isfinite(point[1])]
    xs, ys = [point[0] for point in points], [point[1] for point in points]
    if not few:
        bounds = [[value if math.isfinite(value) else worst for value in (point[2], point[3])] for point in points]
        below, above = [min(pair) for pair in bounds], [max(pair) for pair in bounds]
        axes.fill_between([*xs, end], [*below, below[-1]], [*above, above[-1]], step="post", color=style.colour, alpha=0.16, lw=0)
    axes.step([*xs, end], [*ys, ys[-1]], where="post", color=style.colour, linestyle=style.line, lw=1.6)
    end_marker(axes, style, end, ys[-1])
    for x, median, lower, upper in points:
        band = (None, None) if few else tuple(value if math.isfinite(value) else None for value in (lower, upper))
        table.append((*head, None, x, median, *band))
    return table


def _said(view: View, line: Line, *, single: bool) -> str:
    name = view.style(line.label).label + ("" if single else f" in {line.scope.text}")
    many = counted(len(line.seeds), "run")
    if not line.is_drawn:
        return f"{name} ({many}): no incumbent"
    middle = line.end // 2 if line.clock == "trials" else line.end / 2
    half = at([(x, median) for x, median, _, _ in line.points], middle, math.inf)
    unit = "trials" if line.clock == "trials" else "s"
    return (
        f"{name} ({many}): median {_metric(line.metric)} {value_text(half) if math.isfinite(half) else 'not there yet'} after "
        f"{value_text(middle, unit)}, {value_text(line.best)} at the end, after {value_text(line.end, unit)}"
    )


def _metric(name: str) -> str:
    return name.replace("_", " ")


def _no_incumbent(view: View, lines: Sequence[Line]) -> str:
    without = [
        f"{view.style(line.label).label} ({line.scope.text})" for line in lines if not line.is_drawn and line.clock == "trials"
    ]
    return f"Without an incumbent in at least half of its runs, so without a line: {', '.join(without)}." if without else ""
