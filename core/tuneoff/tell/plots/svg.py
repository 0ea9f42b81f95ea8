"""A figure as SVG inside a page, and as PNG. The page's colours hold in the SVG: each of ours becomes a CSS variable."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET

from tuneoff.tell.plots.canvas import Sheet
from tuneoff.tell.plots.theme import variables

DPI = 150
_NAMESPACE = re.compile(r"\{([^}]*)\}")
_XLINK = "http://www.w3.org/1999/xlink"
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_DEFAULTS = {"stroke-linejoin: round", "stroke-linecap: butt", "fill: none"}


def to_png(sheet: Sheet) -> bytes:
    """Return the picture in light colours with its title."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    file = io.BytesIO()
    FigureCanvasAgg(sheet.figure)
    sheet.figure.savefig(file, format="png", dpi=DPI, metadata={"Software": None})
    return file.getvalue()


def to_svg(sheet: Sheet, name: str, title: str, alternative: str) -> str:
    """Return an `<svg>` element without the title's band: as wide as its place, its ids beginning with `name`.

    The same figure gives the same text. Screen readers hear `title` and `alternative`, and nothing of its parts.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    sheet.title.set_visible(False)
    file = io.BytesIO()
    FigureCanvasSVG(sheet.figure)
    sheet.figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None, "Format": None})
    sheet.title.set_visible(True)
    root = ET.fromstring(file.getvalue())
    _tidy(root, name)
    width, height = sheet.figure.get_size_inches() * 72
    band = sheet.band * 72
    root.attrib = {
        "xmlns": "http://www.w3.org/2000/svg",
        "xmlns:xlink": _XLINK,
        "viewBox": f"0 {band:g} {width:g} {height - band:.6g}",
        "width": "100%",
        "role": "img",
        "aria-labelledby": f"{name}-title {name}-desc",
        "style": "stroke-linejoin: round; stroke-linecap: butt; font-family: system-ui, 'DejaVu Sans', sans-serif",
    }
    for place, (tag, text) in enumerate((("title", title), ("desc", alternative))):
        element = ET.Element(tag, {"id": f"{name}-{tag}"})
        element.text = text
        element.tail = "\n"
        root.insert(place, element)
    return ET.tostring(root, encoding="unicode")


def _tidy(root: ET.Element, name: str) -> None:
    """Take out what a page must not have, and give the rest short ids of its own."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.endswith("}metadata") or child.tag.endswith("}style"):
                parent.remove(child)
    used = _references(root)
    ids = {old: f"{name}-{number}" for number, old in enumerate(used, 1)}
    colours = variables()
    for element in root.iter():
        element.tag = _NAMESPACE.sub("", element.tag)
        element.tail = None if element.tail is None or not element.tail.strip() else element.tail
        if element.tag not in ("text", "tspan") and (element.text is None or not element.text.strip()):
            element.text = None
        found: dict[str, str] = {}
        for key, value in element.attrib.items():
            if key == "id":
                if value in ids:
                    found["id"] = ids[value]
                continue
            if key == f"{{{_XLINK}}}href":
                found["xlink:href"] = f"#{ids[value[1:]]}"
                continue
            value = _REFERENCE.sub(lambda match: f"url(#{ids[match[1]]})", value)
            if key in ("style", "fill", "stroke"):
                value = _COLOUR.sub(lambda match: colours.get(match[0].lower(), match[0]), value)
            if key in ("fill", "stroke"):  # an attribute may hold no variable in every reader
                key, value = "style", f"{key}: {value}"
            elif key == "style":
                value = _style(value)
            elif key == "transform" and value.startswith("rotate(-0 "):
                continue
            elif key in ("d", "transform", "x", "y", "width", "height"):
                value = _NUMBER.sub(lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), " ".join(value.split()))
            if value:
                found[_NAMESPACE.sub("", key)] = value
        element.attrib = found
    _flatten(root)


def _references(root: ET.Element) -> list[str]:
    """Return the ids that something refers to, in the order of their first use."""
    found: dict[str, None] = {}
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == f"{{{_XLINK}}}href":
                found.setdefault(value[1:])
            for match in _REFERENCE.finditer(value):
                found.setdefault(match[1])
    return list(found)


def _style(text: str) -> str:
    """Return a style without what the root has set already, and with the size alone of a font."""
    parts = []
    for part in (one.strip() for one in text.split(";")):
        if part.startswith("font:"):
            words = part.removeprefix("font:").split()
            size = next((word for word in words if word.endswith("px")), "9px")
            parts.append(f"font-size: {size}")
            if any(word in ("bold", "700") for word in words):
                parts.append("font-weight: bold")
        elif part and part not in _DEFAULTS - {"fill: none"} and not part.startswith("font-family"):
            parts.append(part)
    return "; ".join(parts)


def _flatten(element: ET.Element) -> None:
    """Replace groups that say nothing by what they hold."""
    for child in list(element):
        _flatten(child)
    flat: list[ET.Element] = []
    for child in element:
        flat.extend(list(child) if child.tag == "g" and not child.attrib else [child])
    element[:] = [child for child in flat if not _is_unseen(child)]
    if element.tag not in ("text", "tspan"):
        for child in element:
            child.tail = "\n"


def _is_unseen(element: ET.Element) -> bool:
    """Tell whether an element draws nothing: a background without colour, an empty list of definitions."""
    if element.tag in ("defs", "g"):
        return len(element) == 0
    return element.tag == "path" and element.get("style") == "fill: none"
