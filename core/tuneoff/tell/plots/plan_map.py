"""What became of every planned run?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from matplotlib.patches import Patch

from tuneoff.base.words import counted
from tuneoff.judge.answers.answer import EstimatedGroup
from tuneoff.tell.plots.canvas import SIZE, SMALL, WIDTH, Sheet, names_room, patch_key, rectangles
from tuneoff.tell.plots.drawing import Drawing
from tuneoff.tell.plots.made import Row, made
from tuneoff.tell.plots.theme import GRID, INK, MUTED, PAPER, SERIES
from tuneoff.tell.plots.view import View
from tuneoff.tell.plots.words import shown

LOOKS: dict[str, tuple[str, str | None]] = {
    "done": (SERIES[4], None),
    "failed": (SERIES[6], "xxxx"),
    "timeout": (SERIES[1], "||||"),
    "interrupted": (SERIES[2], "\\\\\\\\"),
    "skipped": (MUTED, "////"),
    "planned": (GRID, None),
}
PER_LINE = 50
MOST_LINES = 220
CELL = 0.19  # inches at most, so is a line's height


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the map: a scope's name, or up to so many runs of a group."""

    text: str
    group: EstimatedGroup | None
    first: int = 0  # of the group's runs


def draw(view: View) -> Drawing | None:
    """Draw a cell per planned run, coloured by its status; a line per adapter and scope."""
    lines = _lines(view)
    if not lines:
        return None
    kept = lines[:MOST_LINES]
    names = [line.text for line in kept if line.group is not None]
    left = names_room(names) + 0.1
    longest = max(min(PER_LINE, len(line.group.runs)) for line in kept if line.group is not None)
    cell = min(CELL * 1.6, (WIDTH - left - 0.2) / longest)
    statuses = Counter(run.status for group in view.answers.groups for run in group.runs)
    keys: list[Patch] = [patch_key(f"{name} ({statuses[name]})", *LOOKS[name]) for name in LOOKS if statuses[name]]
    sheet = Sheet("What became of every planned run?", [CELL * len(kept)], left=left, legend=keys, above=0.12, below=0.12)
    axes = sheet.panel(0)
    boxes: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in LOOKS}
    rows: list[Row] = []
    for place, line in enumerate(kept):
        if line.group is None:
            axes.text(0, place + 0.12, line.text, va="center", size=SIZE, weight="bold", color=INK)
            continue
        for number, run in enumerate(line.group.runs[line.first : line.first + PER_LINE]):
            boxes.setdefault(run.status, []).append((number + 0.06, number + 0.94, place - 0.42, place + 0.42))
            label = view.label(line.group.label)
            rows.append((line.group.scope.text, label, run.seed, run.run_id, run.status, run.is_continued, run.reason))
    for status, cells in boxes.items():
        colour, hatch = LOOKS.get(status, (GRID, None))
        rectangles(axes, cells, facecolor=colour, hatch=hatch, edgecolor=PAPER, linewidth=0)
    axes.set_xlim(0, sheet.panel_width / cell)
    axes.set_ylim(len(kept) - 0.5, -0.5)
    places = [place for place, line in enumerate(kept) if line.group is not None]
    axes.set_yticks(places, names, size=SMALL)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    total = statuses.total()
    drawn = len(rows)
    return made(
        sheet,
        "plan",
        caption=(
            f"A cell is a planned run, a line an adapter, its cells the seeds in the plan's order. {counted(total, 'run')} "
            f"planned: {_counts(statuses)}."
        ),
        parts=[f"{counted(total, 'planned run')}: {_counts(statuses)}", *_said(view)],
        columns=("scope", "adapter", "seed", "run_id", "status", "continued", "reason"),
        rows=rows,
        notes=(f"{drawn} of {total} runs are drawn: those of the first lines." if drawn < total else "",),
    )


def _lines(view: View) -> list[Line]:
    found: list[Line] = []
    several = len({group.scope for group in view.answers.groups}) > 1
    for scope in dict.fromkeys(group.scope for group in view.answers.groups):
        if several:
            found.append(Line(shown(scope.text, 90), None))
        for group in (group for group in view.answers.groups if group.scope == scope and group.runs):
            for first in range(0, len(group.runs), PER_LINE):
                found.append(Line("" if first else view.style(group.label).label, group, first))
    return found if any(line.group is not None for line in found) else []


def _counts(statuses: Counter[str]) -> str:
    return ", ".join(f"{statuses[name]} {name}" for name in (*LOOKS, *(set(statuses) - set(LOOKS))) if statuses[name])


def _said(view: View) -> list[str]:
    return [
        f"{view.style(group.label).label} in {group.scope.text}: {_counts(Counter(run.status for run in group.runs))}"
        for group in view.answers.groups
        if any(run.status != "done" for run in group.runs)
    ]
