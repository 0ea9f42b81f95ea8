"""Which mean ranks over the tasks differ by more than chance?"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from tuneoff.answers.model import AcrossTasks
from tuneoff.plots.canvas import SMALL, Sheet
from tuneoff.plots.drawing import Drawing
from tuneoff.plots.made import Row, made
from tuneoff.plots.over_tasks import head, scope_text, title
from tuneoff.plots.theme import INK, MUTED
from tuneoff.plots.view import View
from tuneoff.words import counted

LEAST_TASKS = 10  # of a critical difference
UNIT = 0.17  # inches of one step of a panel's height
TOP, FIRST, STEP = -3.0, 1.9, 1.1  # the upper end, the first name below the bars, from name to name


def draw(view: View) -> Drawing | None:
    """Draw the mean ranks with the critical difference; None below ten tasks."""
    shown = [
        one for one in view.answers.across if one.critical_difference is not None and one.ranks and len(one.tasks) >= LEAST_TASKS
    ]
    if not shown:
        return None
    sheet = Sheet(
        "Which mean ranks over the tasks differ by more than chance?",
        [UNIT * (_depth(one) - TOP) for one in shown],
        left=0.3,
        right=0.3,
        below=0.25,
    )
    rows: list[Row] = []
    parts: list[str] = []
    for place, one in enumerate(shown):
        axes = sheet.panel(place, title=title(one, sheet))
        difference = one.critical_difference or 0.0
        ordered = sorted(one.ranks.items(), key=lambda item: item[1])
        _ranks(view, axes, ordered, difference)
        rows += [(*head(one), view.style(label).label, rank, difference, len(one.tasks)) for label, rank in ordered]
        ranks = ", ".join(f"{view.style(label).label} {rank:.2f}" for label, rank in ordered)
        parts.append(f"{scope_text(one)}, {counted(len(one.tasks), 'task')}: {ranks}; critical difference {difference:.2f}")
    return made(
        sheet,
        "ranks",
        caption="Mean ranks over the tasks, 1 is the best. Adapters joined by a bar differ by less than the critical difference "
        "(Nemenyi); one that is not joined still depends on which others take part.",
        parts=parts,
        columns=("question", "scope", "adapter", "rank", "critical_difference", "tasks"),
        rows=rows,
    )


def _depth(one: AcrossTasks) -> float:
    """Return how far down the names of a panel reach."""
    bars = cliques(sorted(one.ranks.values()), one.critical_difference or 0.0)
    return 0.5 * len(bars) + FIRST + STEP * ((len(one.ranks) + 1) // 2)


def cliques(ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """Return (first, last) of each longest stretch of ordered ranks that lie within the difference; single ones left out."""
    found: list[tuple[int, int]] = []
    for first in range(len(ranks)):
        last = max(place for place in range(len(ranks)) if ranks[place] - ranks[first] <= difference)
        if last > first and not (found and found[-1][1] >= last):
            found.append((first, last))
    return found


def _ranks(view: View, axes: Axes, ordered: Sequence[tuple[str, float]], difference: float) -> None:
    count = len(ordered)
    bars = cliques([rank for _, rank in ordered], difference)
    depth = 0.5 * len(bars) + FIRST
    high = max(float(count), 1 + difference)
    for place, (label, rank) in enumerate(ordered):
        style = view.style(label)
        side = -1 if place < (count + 1) // 2 else 1
        level = depth + STEP * (place if side < 0 else count - 1 - place)
        edge = 0.85 if side < 0 else high + 0.15
        axes.plot([rank, rank, edge], [0, level, level], color=MUTED, lw=0.8)
        axes.plot(
            [rank],
            [0],
            marker=style.marker,
            markersize=7,
            markerfacecolor=style.fill,
            markeredgecolor=style.colour,
            clip_on=False,
        )
        text = f"{style.label} {rank:.2f}"
        axes.text(edge, level - 0.12, text, ha="left" if side < 0 else "right", va="bottom", size=SMALL, color=INK)
    for number, (first, last) in enumerate(bars):
        y = 0.55 + number * 0.5
        axes.plot([ordered[first][1] - 0.02, ordered[last][1] + 0.02], [y, y], color=INK, lw=3, solid_capstyle="butt")
    axes.plot([1, 1 + difference], [-1.9, -1.9], color=INK, lw=2, marker="|", markersize=7)
    axes.text(1 + difference / 2, -2.05, f"critical difference {difference:.2f}", ha="center", va="bottom", size=SMALL, color=INK)
    axes.set_xlim(0.8, high + 0.2)
    axes.set_ylim(depth + STEP * ((count + 1) // 2), TOP)
    axes.set_yticks([])
    axes.xaxis.tick_top()
    axes.spines[:].set_visible(False)
    axes.spines["top"].set(visible=True, position=("data", 0))
    axes.set_xticks(range(1, count + 1))
    axes.grid(visible=False)
