"""The colours, markers and line styles of plots: colour is never the only sign, and an adapter keeps its own everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

# Found by a search for the largest difference between any two, also as seen with each kind of colour blindness; at least 3:1
# against the paper. A page sets the dark ones; light and print are what a drawing falls back to.
LIGHT: Mapping[str, str] = {
    "ink": "#1b1f24",
    "paper": "#ffffff",
    "grid": "#dde1e6",
    "muted": "#737a83",
    "c1": "#2e32e1",
    "c2": "#b08d00",
    "c3": "#d769ae",
    "c4": "#176242",
    "c5": "#5b8afb",
    "c6": "#3a1257",
    "c7": "#590b00",
    "c8": "#7f7332",
}
DARK: Mapping[str, str] = {
    "ink": "#e8eaed",
    "paper": "#16191d",
    "grid": "#343a42",
    "muted": "#8b929b",
    "c1": "#5162ff",
    "c2": "#fb791c",
    "c3": "#c86c99",
    "c4": "#49f4a7",
    "c5": "#bcf5ff",
    "c6": "#ab99f5",
    "c7": "#da252f",
    "c8": "#e5f27a",
}
INK, PAPER, GRID, MUTED = (LIGHT[name] for name in ("ink", "paper", "grid", "muted"))
SERIES = tuple(LIGHT[f"c{number}"] for number in range(1, 9))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1, 1.5), (6, 2, 1, 2), (3, 1, 1, 1, 1, 1))  # (): solid
HATCH = "////"  # of what is emulated


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How one adapter is drawn. `hollow`: the same entry again, for the noise floor."""

    label: str  # as it is shown
    colour: str
    marker: str
    dashes: tuple[float, ...]
    hollow: bool = False
    emulated: bool = False

    @property
    def fill(self) -> str:
        """The colour of a marker's inside."""
        return PAPER if self.hollow or self.emulated else self.colour

    @property
    def line(self) -> Literal["-"] | tuple[float, tuple[float, ...]]:
        """The line style, as matplotlib takes it."""
        return (0.0, self.dashes) if self.dashes else "-"


def styles(labels: Iterable[tuple[str, str, int, bool]]) -> dict[str, Style]:
    """Return a style per label, given (label, text to show, replicate, emulated) in the order of the file.

    An entry that is there again has the colour of the first one. What is emulated is grey.
    """
    found: dict[str, Style] = {}
    places: dict[str, int] = {}
    for label, text, replicate, emulated in labels:
        if label in found:
            continue
        entry = label.rpartition("#")[0] if replicate and "#" in label else label
        place = places.setdefault(entry, len(places))
        found[label] = Style(
            label=text,
            colour=MUTED if emulated else SERIES[place % len(SERIES)],
            marker=MARKERS[place % len(MARKERS)],
            dashes=DASHES[(place + replicate) % len(DASHES)],
            hollow=replicate > 0,
            emulated=emulated,
        )
    return found


def css(theme: Literal["light", "dark"]) -> str:
    """Return the variables of a theme as CSS declarations, for a page that holds drawings."""
    return " ".join(f"--{name}: {colour};" for name, colour in (LIGHT if theme == "light" else DARK).items())


def variables() -> dict[str, str]:
    """Return, by the colour that a figure is drawn in, what stands for it in a page."""
    return {colour: f"var(--{name}, {colour})" for name, colour in LIGHT.items()}
