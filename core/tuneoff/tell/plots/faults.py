"""What becomes of a run when something goes wrong?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from tuneoff.base.files import read_json
from tuneoff.errors import ResultsError
from tuneoff.judge.faults import FAULTS, TITLES
from tuneoff.tell.plots.canvas import SMALL, Sheet, names_room, patch_key, rectangles
from tuneoff.tell.plots.drawing import Drawing
from tuneoff.tell.plots.made import Row, made
from tuneoff.tell.plots.texts import lines, shown
from tuneoff.tell.plots.theme import GRID, INK, MUTED, PAPER, SERIES
from tuneoff.tell.plots.view import LABEL, View

FILE = "faults.json"  # what `tuneoff faults --json` wrote, beside the plan
LOOKS: dict[str, tuple[str, str | None, str]] = {  # colour, hatch, what a cell says
    "recovered": (SERIES[3], None, "ok"),
    "trial lost": (SERIES[4], None, "lost"),
    "run aborted": (SERIES[1], None, "aborted"),
    "hung until the limit": (SERIES[2], None, "hung"),
    "silently wrong": (SERIES[6], None, "wrong"),
}
NOT_RUN = "not run"
TINT = 0.32  # so that a cell's text is read on both papers


def draw(view: View) -> Drawing | None:
    """Draw the outcome of every fault by adapter, a panel per setting; None where the folder has no fault matrix."""
    runs = read_faults(view.results.folder)
    if not runs:
        return None
    settings = list(dict.fromkeys(str(run["setting"]) for run in runs))
    order = {fault.name: place for place, fault in enumerate(FAULTS)}
    faults = sorted(dict.fromkeys(str(run["fault"]) for run in runs), key=lambda name: order.get(name, len(order)))
    adapters = list(dict.fromkeys(str(run["adapter"]) for run in runs))
    names = [shown(name, LABEL) for name in faults]
    used = [name for name in LOOKS if any(run["outcome"] == name for run in runs)]
    keys: list[Patch] = [
        Patch(facecolor=LOOKS[name][0], alpha=TINT, linewidth=0, label=f"{LOOKS[name][2]}: {name}") for name in used
    ]
    keys.append(patch_key("– not run, or no such part", GRID))
    sheet = Sheet(
        "What becomes of a run when something goes wrong?",
        [0.22 * len(faults)] * len(settings),
        left=names_room(names) + 0.05,
        legend=keys,
        above=0.62,
        below=0.1,
    )
    rows: list[Row] = []
    for place, setting in enumerate(settings):
        axes = sheet.panel(place, title="")
        mine = {(str(run["fault"]), str(run["adapter"])): run for run in runs if run["setting"] == setting}
        _panel(axes, mine, faults, adapters, sheet.panel_width)
        axes.set_yticks(range(len(faults)), names, size=SMALL)
        axes.set_title({**TITLES}.get(setting, shown(setting, 60)), pad=22, y=1.0)  # type: ignore[call-overload]
        rows += [(setting, *key, run["outcome"], run.get("wasted_seconds"), run.get("reason")) for key, run in mine.items()]
    return made(
        sheet,
        "faults",
        caption="The fault strikes one of a few trials. Lost: the answer is right for the other trials; wrong: it says "
        "what is not true.",
        parts=_said(runs, settings, adapters),
        columns=("setting", "fault", "adapter", "outcome", "wasted_seconds", "reason"),
        rows=rows,
    )


def read_faults(folder: Path) -> list[dict[str, Any]]:
    """Return the runs of a fault matrix beside the results, nothing where there is none.

    Raises:
        ResultsError: the file is damaged.
    """
    path = folder / FILE
    try:
        content = read_json(path)
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path} is no fault matrix: {error}; write it by: tuneoff faults --json") from error
    runs = content.get("runs") if isinstance(content, dict) else None
    if not isinstance(runs, list) or not all(isinstance(run, dict) and set(run) >= _KEYS for run in runs):
        raise ResultsError(f"{path} is no fault matrix: it has no list `runs`; write it by: tuneoff faults --json")
    return runs


_KEYS = {"adapter", "setting", "fault", "outcome"}


def _panel(
    axes: Axes, runs: dict[tuple[str, str], dict[str, Any]], faults: Sequence[str], adapters: Sequence[str], width: float
) -> None:
    boxes: dict[str, list[tuple[float, float, float, float]]] = {}
    for row, fault in enumerate(faults):
        for column, adapter in enumerate(adapters):
            run = runs.get((fault, adapter))
            outcome = str(run["outcome"]) if run is not None and run["outcome"] is not None else NOT_RUN
            boxes.setdefault(outcome, []).append((column + 0.03, column + 0.97, row - 0.45, row + 0.45))
            text = LOOKS[outcome][2] if outcome in LOOKS else "–"
            axes.text(
                column + 0.5,
                row + 0.02,
                text,
                ha="center",
                va="center",
                size=SMALL,
                color=INK if outcome in LOOKS else MUTED,
                weight="bold" if text in ("hung", "wrong") else "normal",
            )
    for outcome, cells in boxes.items():
        colour, hatch = LOOKS[outcome][:2] if outcome in LOOKS else (GRID, None)
        alpha = TINT if outcome in LOOKS else 0.5
        rectangles(axes, cells, facecolor=colour, alpha=alpha, hatch=hatch, edgecolor=PAPER, linewidth=0)
    axes.set_xlim(0, len(adapters))
    axes.set_ylim(len(faults) - 0.5, -0.5)
    letters = max(6, int(width / len(adapters) * 72 / SMALL / 0.62))
    axes.set_xticks(
        [place + 0.5 for place in range(len(adapters))], [lines(shown(name), letters) for name in adapters], size=SMALL
    )
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def _said(runs: Sequence[dict[str, Any]], settings: Sequence[str], adapters: Sequence[str]) -> list[str]:
    parts = []
    for setting in settings:
        for adapter in adapters:
            mine = [run for run in runs if run["setting"] == setting and run["adapter"] == adapter]
            by_outcome = [
                f"{name} under {', '.join(shown(str(run['fault'])) for run in mine if run['outcome'] == name)}"
                for name in LOOKS
                if any(run["outcome"] == name for run in mine)
            ]
            if by_outcome:
                parts.append(f"{shown(adapter)}, {setting}: {', '.join(by_outcome)}")
    return parts
