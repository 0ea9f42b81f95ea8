"""The colours and line styles of plots: colour is never the only sign, and a framework keeps its own everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

# Those of frameworks, c1 to c8, were found by a search for the largest difference between any two, also as seen with each kind of
# colour blindness; at least 3:1 against the paper. The parts of a job are greys, and one colour that no framework has.
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
    "part-start": "#8f98a3",
    "part-training": "#333b44",
    "part-waiting": "#c2410c",
    "part-test": "#ccd2d8",
    "part-stop": "#646d77",
}
DARK: Mapping[str, str] = {
    "ink": "#e8eaed",
    "paper": "#16191d",
    "grid": "#343a42",
    "muted": "#8b929b",
    "c1": "#5162ff",
    "c2": "#e3b505",
    "c3": "#c86c99",
    "c4": "#49f4a7",
    "c5": "#bcf5ff",
    "c6": "#ab99f5",
    "c7": "#da252f",
    "c8": "#e5f27a",
    "part-start": "#77818c",
    "part-training": "#e4e8ec",
    "part-waiting": "#ff7f50",
    "part-test": "#454d57",
    "part-stop": "#a3acb6",
}
SERIES = tuple(name for name in LIGHT if name.startswith("c"))
DASHES = ("", "6 3", "2 2", "8 3 2 3", "4 2 1 2 1 2")  # "": solid


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How one framework is drawn. `colour`: the name of one of the page's colours."""

    colour: str
    dashes: str


def styles(labels: Iterable[tuple[str, int, bool]]) -> dict[str, Style]:
    """Return a style per label, given (label, replicate, emulated) in the order of the file.

    An entry that is there again has the colour of the first one. What is emulated is grey.
    """
    found: dict[str, Style] = {}
    places: dict[str, int] = {}
    for label, replicate, emulated in labels:
        if label in found:
            continue
        entry = label.rpartition("#")[0] if replicate and "#" in label else label
        place = places.setdefault(entry, len(places))
        found[label] = Style(
            colour="muted" if emulated else SERIES[place % len(SERIES)],
            dashes=DASHES[(place // len(SERIES) + replicate) % len(DASHES)],
        )
    return found


def css(theme: Literal["light", "dark"]) -> str:
    """Return the variables of a theme as CSS declarations."""
    return " ".join(f"--{name}: {colour};" for name, colour in (LIGHT if theme == "light" else DARK).items())
