"""A figure laid out in inches: a title, a legend, rows of panels. Nothing of matplotlib's global state stays changed."""

from __future__ import annotations

import math
import textwrap
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, ScalarFormatter

from tuneoff.tell.plots.texts import inches
from tuneoff.tell.plots.theme import GRID, INK, MUTED, PAPER, Style

WIDTH = 7.6  # inches; a page scales it
SIZE, SMALL, TITLE = 9.0, 8.0, 11.0  # points
TITLE_LINE, TITLE_LETTERS = 0.19, 74
LEGEND_ROW = 0.2
EDGE = 0.12
STEEP = 5.0  # losses that differ by more than this factor are read better on a logarithmic axis
_LOCK = threading.Lock()
_RULES: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "tuneoff",
    "text.parse_math": False,  # a dollar sign is one
    "text.usetex": False,
    "font.family": ["DejaVu Sans"],
    "font.size": SIZE,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.labelsize": SMALL,
    "axes.titlecolor": INK,
    "axes.titlesize": SIZE,
    "axes.titlelocation": "left",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.unicode_minus": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "hatch.color": PAPER,
    "hatch.linewidth": 0.8,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "patch.edgecolor": INK,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "legend.fontsize": SMALL,
    "figure.facecolor": PAPER,
    "path.simplify": True,
}


@contextmanager
def rules() -> Iterator[None]:
    """Draw by our own settings, whatever a user's matplotlibrc says; they are put back at the end."""
    with _LOCK, matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # PNG only: a script that the font lacks
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RULES)
        yield


class Sheet:
    """A figure that fills up from the top: title, legend, rows of panels of given heights."""

    def __init__(
        self,
        question: str,
        heights: Sequence[float],
        *,
        columns: int = 1,
        left: float = 0.62,
        gap: float = 0.62,
        above: float = 0.3,
        below: float = 0.45,
        right: float = EDGE,
        foot: float = 0.0,
        legend: Sequence[Artist] = (),
    ) -> None:
        """Lay it out. `left`, `gap`: room for tick labels before the first and the other columns; all in inches.

        `above`, `below`: room around each row; `foot`: more of it below the last one.
        """
        rows, per_row = _legend_rows(legend)
        title = textwrap.wrap(question, TITLE_LETTERS)
        self.band = 0.18 + TITLE_LINE * len(title)  # of the title, which a page writes itself
        top = self.band + rows * LEGEND_ROW + (0.06 if rows else 0)
        self.height = top + sum(heights) + len(heights) * (above + below) + foot
        self.figure = Figure(figsize=(WIDTH, self.height))
        self.title: Text = self.figure.text(
            EDGE / WIDTH, 1 - 0.1 / self.height, "\n".join(title), size=TITLE, weight="bold", va="top", ha="left"
        )
        self.question = question
        self._columns, self._left, self._gap, self._right = columns, left, gap, right
        self._tops: list[tuple[float, float]] = []
        at = top
        for height in heights:
            self._tops.append((at + above, height))
            at += above + height + below
        if rows:
            box = (EDGE / WIDTH, 1 - self.band / self.height)
            self.figure.legend(
                handles=_by_rows(legend, per_row),
                loc="upper left",
                bbox_to_anchor=box,
                ncols=per_row,
                borderaxespad=0,
                borderpad=0,
                handlelength=2.6,
                columnspacing=1.4,
                labelspacing=0.35,
            )

    @property
    def panel_width(self) -> float:
        """How wide a panel is, in inches."""
        return (WIDTH - self._left - self._right - (self._columns - 1) * self._gap) / self._columns

    def panel(self, row: int, column: int = 0, *, title: str = "", outdent: float = 0.0) -> Axes:
        """Add the axes of a place; `outdent`: how far to the left of it the title begins, in inches."""
        top, height = self._tops[row]
        width = self.panel_width
        left = self._left + column * (width + self._gap)
        axes = self.figure.add_axes((left / WIDTH, 1 - (top + height) / self.height, width / WIDTH, height / self.height))
        size = SIZE if columns_fit(title, width + outdent) else SMALL
        axes.set_title(title, pad=4, size=size, x=-outdent / width, y=1.0)  # with a place of its own nothing is searched for
        return axes


def columns_fit(text: str, width: float) -> bool:
    """Tell whether a text fits into so many inches at the size of a panel's title."""
    return inches(text, SIZE) <= width


def letters(width: float, size: float = SIZE) -> int:
    """Return how many letters fit into so many inches."""
    return max(6, int(width * 72 / size / 0.62))


def names_room(names: Sequence[str], size: float = SMALL) -> float:
    """Return the room that names beside an axis need, in inches."""
    return max((inches(name, size) for name in names), default=0) + 0.16


def line_key(style: Style) -> Line2D:
    """Return the legend's entry of an adapter that is drawn as a line with markers."""
    return Line2D(
        [],
        [],
        color=style.colour,
        linestyle=style.line,
        marker=style.marker,
        markerfacecolor=style.fill,
        markeredgecolor=style.colour,
        label=style.label,
    )


def marker_key(style: Style) -> Line2D:
    """Return the legend's entry of an adapter that is drawn as points."""
    return Line2D(
        [],
        [],
        color=style.colour,
        linestyle="none",
        marker=style.marker,
        markerfacecolor=style.fill,
        markeredgecolor=style.colour,
        label=style.label,
    )


def patch_key(label: str, colour: str, hatch: str | None = None) -> Patch:
    """Return the legend's entry of an area; a hatch is of the paper's colour."""
    return Patch(facecolor=colour, edgecolor=PAPER, linewidth=0, hatch=hatch, label=label)


def end_marker(axes: Axes, style: Style, x: float, y: float) -> None:
    """Draw an adapter's marker where its line ends."""
    axes.plot(
        [x],
        [y],
        linestyle="none",
        marker=style.marker,
        markerfacecolor=style.fill,
        markeredgecolor=style.colour,
        clip_on=False,
    )


def plain_numbers(axes: Axes, which: str = "both", *, most: int = 5) -> None:
    """Write tick labels as plain numbers, a few of them; none as a power with an offset."""
    for axis in _axes(axes, which):
        formatter = ScalarFormatter(useOffset=False, useMathText=False)
        formatter.set_scientific(False)
        axis.set_major_formatter(formatter)
        axis.set_major_locator(MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10]))


def whole_numbers(axes: Axes, which: str, *, most: int = 6) -> None:
    """Write tick labels of an axis that counts."""
    for axis in _axes(axes, which):
        axis.set_major_locator(MaxNLocator(nbins=most, integer=True, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def log_scale(axes: Axes, which: str, low: float, high: float) -> None:
    """Make an axis logarithmic, with plain tick labels; `low` and `high` are what is drawn."""
    few = high / low < 30
    for axis in _axes(axes, which):
        (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")
        axis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5) if few else (1,), numticks=6))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))


def value_scale(axes: Axes, values: Sequence[float], *, is_max: bool) -> tuple[float, float]:
    """Set the y axis for values of an objective, a steep loss on a logarithmic one; return its limits."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = limits(finite)
    if not is_max and min(finite) > 0 and max(finite) / min(finite) > STEEP:
        low, high = min(finite) / 1.15, max(finite) * 1.15
        log_scale(axes, "y", low, high)
    else:
        plain_numbers(axes, "y", most=4)
    axes.set_ylim(low, high)
    return low, high


def rectangles(axes: Axes, boxes: Sequence[tuple[float, float, float, float]], **look: Any) -> None:
    """Add many boxes (x from, x to, y from, y to) as one shape: small, however many they are."""
    if not boxes:
        return
    corners = np.array([[(a, c), (b, c), (b, d), (a, d), (a, c)] for a, b, c, d in boxes]).reshape(-1, 2)
    codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(boxes))
    axes.add_patch(PathPatch(Path(corners, codes), **look))


def limits(values: Sequence[float], share: float = 0.05) -> tuple[float, float]:
    """Return limits around finite values with a margin; a width even where all are equal."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite), max(finite)
    margin = (high - low) * share or abs(high) * share or 0.5
    return low - margin, high + margin


def _axes(axes: Axes, which: str) -> list[matplotlib.axis.Axis]:
    return [axis for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)) if which in (name, "both")]


def _by_rows(handles: Sequence[Artist], per_row: int) -> list[Artist]:
    """Return the entries so that they are read row by row: matplotlib fills columns."""
    rows = math.ceil(len(handles) / per_row)
    full = len(handles) - (rows - 1) * per_row  # columns as long as there are rows
    places = [(row, column) for column in range(per_row) for row in range(rows if column < full else rows - 1)]
    return [handles[row * per_row + column] for row, column in places]


def _legend_rows(handles: Sequence[Artist]) -> tuple[int, int]:
    """Return (rows, entries per row) of a legend that is as wide as the figure."""
    if not handles:
        return 0, 0
    widest = max(inches(str(handle.get_label()), SMALL) for handle in handles) + 0.6
    per_row = max(1, min(len(handles), int((WIDTH - 2 * EDGE) / widest)))
    return math.ceil(len(handles) / per_row), per_row
