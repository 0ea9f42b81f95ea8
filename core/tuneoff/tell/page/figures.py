"""Plots as the page shows them: the drawing inline where it is harmless and small enough, its first rows as a table."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import replace

from tuneoff.base.format import MISSING
from tuneoff.tell.plots.drawing import Drawing

FIRST_ROWS = 12
MOST_BYTES, MOST_BYTES_OF_ONE = 3_000_000, 1_000_000  # of drawings in the page, together and each
PLOTS = "plots"  # the folder of their files, beside the page
ALLOWED = frozenset(
    (
        *("svg", "g", "defs", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan", "title"),
        *("desc", "use", "clipPath", "mask", "pattern", "marker", "symbol", "linearGradient", "radialGradient", "stop"),
    )
)


class UnsafeDrawingError(Exception):
    """A drawing holds what could do more than be looked at."""


class Room:
    """Counts the bytes of drawings in the page."""

    def __init__(self) -> None:
        self._left = MOST_BYTES

    def take(self, size: int) -> bool:
        """Tell whether a drawing of so many bytes still fits, and count it."""
        if size > min(self._left, MOST_BYTES_OF_ONE):
            return False
        self._left -= size
        return True


def plot(drawing: Drawing, room: Room) -> Drawing:
    """Return a drawing that the page may show; one that is too large is without its picture: that is in its file alone.

    Raises:
        UnsafeDrawingError: it holds what could do more than be looked at.
    """
    check_safe(drawing.svg)
    return drawing if room.take(len(drawing.svg.encode())) else replace(drawing, svg="")


def check_safe(svg: str) -> None:
    """Check that a drawing is one `<svg>` of shapes and texts: no script, no handler, nothing that is loaded.

    Raises:
        UnsafeDrawingError: it is not.
    """
    if "<!" in svg:
        raise UnsafeDrawingError("a drawing must be an element alone, but has a declaration")
    try:
        root = ET.fromstring(svg)
    except ET.ParseError as error:
        raise UnsafeDrawingError(f"a drawing must be well-formed, but: {error}") from error
    if _local(root.tag) != "svg":
        raise UnsafeDrawingError(f"a drawing must be an `svg`, but is a {_local(root.tag)!r}")
    for element in root.iter():
        if not isinstance(element.tag, str) or _local(element.tag) not in ALLOWED:
            raise UnsafeDrawingError(f"a drawing must hold shapes and texts alone, but has {element.tag!r}")
        for name, value in element.attrib.items():
            _check_attribute(_local(name), value)


def _check_attribute(name: str, value: str) -> None:
    if name.lower().startswith("on"):
        raise UnsafeDrawingError(f"a drawing must have no handler, but has {name!r}")
    if name == "href" and not value.startswith("#"):
        raise UnsafeDrawingError(f"a drawing must refer to itself alone, but to {value[:40]!r}")
    squeezed = value.replace(" ", "").lower()
    if squeezed.count("url(") != squeezed.count("url(#") or "@import" in squeezed:
        raise UnsafeDrawingError(f"a drawing must load nothing, but {name!r} is {value[:40]!r}")


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def table_cell(value: str | float | int | bool | None) -> str:
    """Return a value of a drawing's table."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return MISSING
    return f"{value:.6g}" if isinstance(value, float) else str(value)
