"""How far from the best known value does each adapter end, over all tasks?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes

from tuneoff.base.format import counted
from tuneoff.judge.answers.answer import AcrossTasks
from tuneoff.judge.stats.interval import Interval
from tuneoff.tell.plots.canvas import SMALL, Sheet, letters, limits, names_room, plain_numbers
from tuneoff.tell.plots.drawing import Drawing
from tuneoff.tell.plots.made import Row, made
from tuneoff.tell.plots.texts import lines, value_text
from tuneoff.tell.plots.view import View

ROW = 0.26


def draw(view: View) -> Drawing | None:
    """Draw the interquartile mean of the normalised regret over all tasks, with its interval."""
    shown = [one for one in view.answers.across if one.iqm_regret]
    if not shown:
        return None
    names = [view.style(label).label for one in shown for label in one.iqm_regret]
    sheet = Sheet(
        "How far from the best known value does each adapter end, over all tasks?",
        [ROW * len(one.iqm_regret) + 0.12 for one in shown],
        left=names_room(names) + 0.05,
        right=0.35,
    )
    rows: list[Row] = []
    parts: list[str] = []
    for place, one in enumerate(shown):
        axes = sheet.panel(place, title=lines(_scope_text(one), letters(sheet.panel_width), 1))
        found = list(one.iqm_regret.items())
        _intervals(view, axes, found)
        axes.set_xlabel("normalised regret: 0 is the best known value, 1 the median of random search", size=SMALL)
        for label, interval in found:
            rows.append(
                (
                    one.question.name,
                    one.scope.text,
                    view.label(label),
                    interval.estimate,
                    interval.low,
                    interval.high,
                    interval.n,
                    interval.method,
                )
            )
            text = f"{_bound_text(interval.estimate)}, from {_bound_text(interval.low)} to {_bound_text(interval.high)}"
            parts.append(f"{_scope_text(one)}: {view.style(label).label} {text}")
    return made(
        sheet,
        "regret",
        caption=f"{_means(shown)} over the runs of all tasks, each task with the same weight; the lower the better.",
        parts=parts,
        columns=("question", "scope", "adapter", "estimate", "low", "high", "n", "method"),
        rows=rows,
    )


def _intervals(view: View, axes: Axes, found: Sequence[tuple[str, Interval]]) -> None:
    finite = [value for _, one in found for value in (one.low, one.estimate, one.high) if math.isfinite(value)]
    low, high = limits([*finite, 0.0] if finite else [0.0, 1.0])
    for place, (label, interval) in enumerate(found):
        style = view.style(label)
        left, right = (max(low, min(high, bound)) for bound in (interval.low, interval.high))
        axes.plot([left, right], [place, place], color=style.colour, lw=2.2, solid_capstyle="butt")
        if math.isinf(interval.high):
            axes.plot([high], [place], ">", color=style.colour, clip_on=False)
        if math.isfinite(interval.estimate):
            axes.plot(
                [interval.estimate],
                [place],
                marker=style.marker,
                markersize=7,
                markerfacecolor=style.fill,
                markeredgecolor=style.colour,
            )
    axes.set_xlim(low, high)
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set_yticks(range(len(found)), [view.style(label).label for label, _ in found], size=SMALL)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    plain_numbers(axes, "x", most=6)


def _means(shown: Sequence[AcrossTasks]) -> str:
    confidence = next(iter(shown[0].iqm_regret.values())).confidence
    return f"The interquartile mean of the normalised regret with its interval of {100 * confidence:.4g} % confidence"


def _scope_text(one: AcrossTasks) -> str:
    """Return what an answer is of: `quality, random, 12 tasks`."""
    return f"{one.question.name}, {one.scope.text}, {counted(len(one.tasks), 'task')}"


def _bound_text(value: float) -> str:
    """Return a bound of an interval as text."""
    return "no bound" if math.isinf(value) else value_text(value)
