"""How good is the best configuration so far, after so many trials and after so many seconds?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from tuneoff.answers.model import Group, Scope
from tuneoff.metrics.slots import trial_window
from tuneoff.plots.canvas import SMALL, Sheet, letters, limits, line_key, log_scale, plain_numbers
from tuneoff.plots.drawing import Drawing
from tuneoff.plots.made import Row, made
from tuneoff.plots.steps import at, combined
from tuneoff.plots.theme import Style
from tuneoff.plots.view import FEW_SCOPES, Run, View, tried
from tuneoff.plots.words import lines, value_text
from tuneoff.words import counted

BAND_FROM = 10  # runs: below, each run is a thin line
CLOCKS = ("trials", "seconds")
STEEP = 5.0  # losses that differ by more are read better on a logarithmic axis
FAR = 30.0  # ends that differ by more than this factor need a logarithmic axis
Points = tuple[tuple[float, float, float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The incumbents of a group on one clock."""

    scope: Scope
    label: str
    clock: str
    metric: str
    is_max: bool
    seeds: tuple[tuple[int, tuple[tuple[float, float], ...]], ...]  # (seed, steps)
    points: Points  # (x, median, lower quartile, upper quartile)
    end: float  # of its longest run

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
    curves = [curve for scope in scopes for curve in _curves(view, scope)]
    shown = [scope for scope in scopes if any(curve.scope == scope and curve.is_drawn for curve in curves)]
    if not shown:
        return None
    small = len(shown) > FEW_SCOPES
    per_row = 2 if small else 1  # scopes
    rows = math.ceil(len(shown) / per_row)
    labels = list(dict.fromkeys(curve.label for curve in curves if curve.is_drawn))
    sheet = Sheet(
        "How good is the best configuration so far, by trials and by seconds?",
        [1.25 if small else 2.2] * rows,
        columns=2 * per_row,
        gap=0.5,
        legend=[line_key(view.style(label)) for label in labels],
        above=0.36 if small else 0.3,
    )
    table: list[Row] = []
    for place, scope in enumerate(shown):
        row, column = place // per_row, 2 * (place % per_row)
        mine = [curve for curve in curves if curve.scope == scope and curve.is_drawn]
        title = lines(scope.text, letters(2 * sheet.panel_width + 0.5, SMALL), 1)
        for offset, clock in enumerate(CLOCKS):
            axes = sheet.panel(row, column + offset, title="" if offset else title)
            table += _panel(view, axes, [curve for curve in mine if curve.clock == clock], clock)
            if offset == 0 and column == 0:
                axes.set_ylabel(_metric(mine[0].metric))
    caption = (
        "The median over seeds of the best validation value so far, as steps; the band holds the middle half of the runs, thin "
        "lines are single runs where there are fewer than ten. A run that failed counts as the worst value throughout."
    )
    return made(
        sheet,
        "anytime",
        caption=caption,
        parts=[_said(view, curve, single=len(shown) == 1) for curve in curves if curve.scope in shown],
        columns=("scope", "adapter", "clock", "seed", "x", "value", "lower_quartile", "upper_quartile"),
        rows=table,
        notes=(note, _no_incumbent(view, curves)),
    )


def _curves(view: View, scope: Scope) -> list[Curve]:
    found = []
    for group in view.groups(scope):
        runs = tried(view.runs(group))
        if runs:
            found += [_curve(view, scope, group, runs, clock) for clock in CLOCKS]
    return found


def _curve(view: View, scope: Scope, group: Group, runs: Sequence[Run], clock: str) -> Curve:
    objective = view.objective(runs[0])
    worst = -math.inf if objective.mode == "max" else math.inf
    seeds = tuple(
        (run.ref.seed, tuple({float(getattr(step, clock)): step.value for step in view.improvements(run)}.items()))
        for run in runs
    )
    return Curve(
        scope=scope,
        label=group.label,
        clock=clock,
        metric=objective.metric,
        is_max=objective.mode == "max",
        seeds=seeds,
        points=tuple(combined([steps for _, steps in seeds], worst)),
        end=max(_end(run, clock) for run in runs),
    )


def _end(run: Run, clock: str) -> float:
    if run.record is None:
        return 0.0
    if clock == "trials":
        return float(sum(trial.used_ticket for trial in run.record.trials))
    window = trial_window(run.record)
    return (window[1] - window[0]) / 1e9 if window is not None else 0.0


def _panel(view: View, axes: Axes, curves: Sequence[Curve], clock: str) -> list[Row]:
    """Draw the curves of a panel, and return what is drawn."""
    values = [value for curve in curves for _, steps in curve.seeds for _, value in steps]
    values += [value for curve in curves for point in curve.points for value in point[1:]]
    low, high = limits(values)
    starts = [x for curve in curves for x, median, _, _ in curve.points if math.isfinite(median)]
    ends = [max(curve.end, curve.points[-1][0]) for curve in curves]
    if clock == "seconds" and min(starts) > 0 and max(ends) / min(ends) > FAR:
        log_scale(axes, "x", min(starts), max(ends))
    else:
        plain_numbers(axes, "x", most=4)
        axes.set_xlim(0, 1.03 * (max(ends) or 1))
    finite = [value for value in values if math.isfinite(value)]
    if not curves[0].is_max and min(finite) > 0 and max(finite) / min(finite) > STEEP:
        low, high = min(finite) / 1.15, max(finite) * 1.15
        log_scale(axes, "y", low, high)
    else:
        plain_numbers(axes, "y", most=4)
    axes.set_ylim(low, high)
    axes.set_xlabel("trials" if clock == "trials" else "seconds since the first trial was submitted", size=SMALL)
    if clock == "seconds" and axes.get_position().width < 0.3:
        axes.set_xlabel("seconds", size=SMALL)
    table: list[Row] = []
    for curve in curves:
        table += _draw_curve(axes, curve, view.style(curve.label), low if curve.is_max else high)
    return table


def _draw_curve(axes: Axes, curve: Curve, style: Style, worst: float) -> list[Row]:
    table: list[Row] = []
    end = max(curve.end, curve.points[-1][0])
    few = len(curve.seeds) < BAND_FROM
    head = (curve.scope.text, style.label, curve.clock)
    if few and len(curve.seeds) > 1:
        for seed, steps in curve.seeds:
            if steps:
                xs, ys = [x for x, _ in steps], [value for _, value in steps]
                axes.step([*xs, end], [*ys, ys[-1]], where="post", color=style.colour, lw=0.6, alpha=0.6)
                table += [(*head, seed, x, value, None, None) for x, value in steps]
    points = [point for point in curve.points if math.isfinite(point[1])]
    xs, ys = [point[0] for point in points], [point[1] for point in points]
    if not few:
        bounds = [[value if math.isfinite(value) else worst for value in (point[2], point[3])] for point in points]
        below, above = [min(pair) for pair in bounds], [max(pair) for pair in bounds]
        axes.fill_between(
            [*xs, end], [*below, below[-1]], [*above, above[-1]], step="post", color=style.colour, alpha=0.16, lw=0
        )
    axes.step([*xs, end], [*ys, ys[-1]], where="post", color=style.colour, linestyle=style.line, lw=1.6)
    axes.plot(
        [end],
        [ys[-1]],
        linestyle="none",
        marker=style.marker,
        markerfacecolor=style.fill,
        markeredgecolor=style.colour,
        clip_on=False,
    )
    for x, median, lower, upper in points:
        band = (None, None) if few else tuple(value if math.isfinite(value) else None for value in (lower, upper))
        table.append((*head, None, x, median, *band))
    return table


def _said(view: View, curve: Curve, *, single: bool) -> str:
    name = view.style(curve.label).label + ("" if single else f" in {curve.scope.text}")
    many = counted(len(curve.seeds), "run")
    if not curve.is_drawn:
        return f"{name} ({many}): no incumbent"
    middle = curve.end // 2 if curve.clock == "trials" else curve.end / 2
    half = at([(x, median) for x, median, _, _ in curve.points], middle, math.inf)
    unit = "trials" if curve.clock == "trials" else "s"
    return (
        f"{name} ({many}): median {_metric(curve.metric)} {value_text(half) if math.isfinite(half) else 'not there yet'} after "
        f"{value_text(middle, unit)}, {value_text(curve.best)} at the end, after {value_text(curve.end, unit)}"
    )


def _metric(name: str) -> str:
    return name.replace("_", " ")


def _no_incumbent(view: View, curves: Sequence[Curve]) -> str:
    without = [
        f"{view.style(curve.label).label} ({curve.scope.text})" for curve in curves if not curve.is_drawn and curve.clock == "trials"
    ]
    return f"Without an incumbent in at least half of its runs, so without a line: {', '.join(without)}." if without else ""
