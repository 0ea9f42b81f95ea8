"""How likely is a run of one adapter better than a run of another?"""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from tuneoff.answers.model import AcrossTasks
from tuneoff.plots.canvas import SMALL, Sheet, letters, names_room, rectangles
from tuneoff.plots.drawing import Drawing
from tuneoff.plots.made import Row, made
from tuneoff.plots.over_tasks import bound_text, bounds, head, scope_text, title
from tuneoff.plots.theme import INK, MUTED, SERIES
from tuneoff.plots.view import View
from tuneoff.plots.words import lines
from tuneoff.stats.interval import Interval


def draw(view: View) -> Drawing | None:
    """Draw the probability that a run of one adapter is better than one of another, a matrix per question."""
    shown = [one for one in view.answers.across if one.improvement]
    if not shown:
        return None
    names = [view.style(label).label for one in shown for label in one.labels]
    sheet = Sheet(
        "How likely is a run of one adapter better than a run of another?",
        [0.42 * len(one.labels) for one in shown],
        left=names_room(names) + 0.05,
        above=0.62,
        below=0.15,
    )
    rows: list[Row] = []
    parts: list[str] = []
    for place, one in enumerate(shown):
        axes = sheet.panel(place)
        axes.set_title(title(one, sheet), pad=22)
        chances = _chances(one)
        _matrix(view, axes, one, chances, sheet.panel_width)
        for (first, second), interval in chances.items():
            pair = (view.style(first).label, view.style(second).label)
            rows.append((*head(one), *pair, *bounds(interval), interval.method))
        for (first, second), interval in one.improvement.items():
            text = f"{bound_text(interval.estimate)}, from {bound_text(interval.low)} to {bound_text(interval.high)}"
            parts.append(f"{scope_text(one)}: {view.style(first).label} better than {view.style(second).label} {text}")
    return made(
        sheet,
        "improvement",
        caption="The chance that a run of the row is better than a run of the column, averaged over the tasks, ties half; "
        "below it the interval. A half is no difference.",
        parts=parts,
        columns=("question", "scope", "adapter", "than", "estimate", "low", "high", "method"),
        rows=rows,
    )


def _chances(one: AcrossTasks) -> dict[tuple[str, str], Interval]:
    """Return the probability of every ordered pair; of one that is not told, the other's complement."""
    found = dict(one.improvement)
    for (first, second), interval in one.improvement.items():
        if (second, first) not in found:
            found[second, first] = Interval(
                estimate=1 - interval.estimate,
                low=1 - interval.high,
                high=1 - interval.low,
                confidence=interval.confidence,
                n=interval.n,
                method=interval.method,
            )
    return found


def _matrix(view: View, axes: Axes, one: AcrossTasks, chances: dict[tuple[str, str], Interval], width: float) -> None:
    labels = one.labels
    for row, first in enumerate(labels):
        for column, second in enumerate(labels):
            interval = chances.get((first, second))
            box = [(column + 0.03, column + 0.97, row - 0.45, row + 0.45)]
            if interval is None:
                rectangles(axes, box, facecolor=MUTED, alpha=0.12, linewidth=0)
                continue
            share = abs(interval.estimate - 0.5) * 2
            colour = SERIES[4] if interval.estimate >= 0.5 else SERIES[1]
            rectangles(axes, box, facecolor=colour, alpha=round(0.05 + 0.45 * share, 2), linewidth=0)
            place: dict[str, Any] = {"ha": "center", "va": "center", "color": INK}
            axes.text(column + 0.5, row - 0.14, f"{interval.estimate:.2f}", size=SMALL, weight="bold", **place)
            axes.text(column + 0.5, row + 0.22, f"{interval.low:.2f} to {interval.high:.2f}", size=6.5, **place)
    axes.set_xlim(0, len(labels))
    axes.set_ylim(len(labels) - 0.5, -0.5)
    room = max(6, letters(width / len(labels), SMALL))
    texts = [view.style(label).label for label in labels]
    axes.set_xticks([place + 0.5 for place in range(len(labels))], [lines(text, room) for text in texts], size=SMALL)
    axes.set_yticks(range(len(labels)), texts, size=SMALL)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
