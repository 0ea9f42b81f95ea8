"""A drawing can be put into a page: its own ids, the page's colours, text as text, and nothing that runs."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import chain

import matplotlib
import pytest

from builders.made_curves import Made
from tell.plots.drawn import draw, drawn
from tuneoff.tell.plots.canvas import Sheet, plain_numbers, rules
from tuneoff.tell.plots.drawing import Drawing
from tuneoff.tell.plots.svg import to_svg
from tuneoff.tell.plots.theme import DARK, LIGHT

SVG = "{http://www.w3.org/2000/svg}"
NASTY = "a<script>alert(1)</script>&$x_1$\x1b[31m\x00]]>"


def elements(drawing: Drawing) -> list[ET.Element]:
    return list(ET.fromstring(drawing.svg).iter())


def test_every_drawing_is_xml_with_title_and_description(several: dict[str, Drawing]) -> None:
    for drawing in several.values():
        root = ET.fromstring(drawing.svg)
        assert root.get("role") == "img"
        assert root.get("width") == "100%"
        assert root.get("height") is None
        title, description = root[0], root[1]
        assert (title.tag, title.text) == (f"{SVG}title", drawing.question)
        assert (description.tag, description.text) == (f"{SVG}desc", drawing.alternative)
        assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"


def test_ids_are_unique_over_all_drawings_and_every_reference_is_kept(several: dict[str, Drawing]) -> None:
    ids = list(chain.from_iterable(re.findall(r'\bid="([^"]+)"', drawing.svg) for drawing in several.values()))
    assert len(ids) == len(set(ids)) > len(several)
    for name, drawing in several.items():
        own = set(re.findall(r'\bid="([^"]+)"', drawing.svg))
        assert all(one.startswith(f"{name}-") for one in own)
        assert set(re.findall(r"url\(#([^)]+)\)", drawing.svg)) | set(re.findall(r'href="#([^"]+)"', drawing.svg)) <= own


def test_every_colour_is_a_variable_of_the_theme(several: dict[str, Drawing]) -> None:
    names = {colour: name for name, colour in LIGHT.items()}
    for drawing in several.values():
        for element in elements(drawing):
            assert not {"fill", "stroke", "class"} & set(element.attrib)
            style = element.get("style", "")
            bare = re.sub(r"var\(--([a-z0-9]+), (#[0-9a-f]{6})\)", lambda found: "", style)
            assert not re.search(r"#[0-9a-f]{3,6}\b(?!\))|rgb|black|white", re.sub(r"url\(#[^)]*\)", "", bare)), style
            for name, colour in re.findall(r"var\(--([a-z0-9]+), (#[0-9a-f]{6})\)", style):
                assert names[colour] == name
                assert name in DARK


def test_a_colour_that_is_none_of_the_theme_stays_visible_to_the_check() -> None:
    with rules():
        sheet = Sheet("Which?", [1.0])
        sheet.panel(0).plot([1, 2], [1, 2], color="#123456")
        svg = to_svg(sheet, "x", "Which?", "None.")
    assert re.search(r"stroke: #123456", svg)
    assert "var(--ink, #1b1f24)" in svg


def test_nothing_of_a_drawing_reaches_into_the_page(several: dict[str, Drawing]) -> None:
    allowed = {"svg", "title", "desc", "g", "path", "use", "defs", "text", "tspan", "clipPath", "rect", "pattern"}
    for drawing in several.values():
        assert {element.tag.removeprefix(SVG) for element in elements(drawing)} <= allowed
        assert not re.search(r"https?://(?!www\.w3\.org/(2000/svg|1999/xlink)\b)", drawing.svg)
        assert not re.search(r"\d{4}-\d\d-\d\d", drawing.svg)  # no date
        assert not re.search(r"-?\d\.\d{4,}", re.sub(r"<(title|desc)\b.*?</\1>", "", drawing.svg, flags=re.S))


@pytest.mark.parametrize("name", ["phases", "quality_price", "paired"])
def test_the_same_results_give_the_same_drawing(name: str) -> None:
    made = Made(seeds=(0, 1))
    one, other = draw(name, made), draw(name, made)
    assert one == other
    assert one != draw(name, Made(seeds=(0, 2)))


@pytest.mark.slow
def test_odd_names_are_shown_as_text() -> None:
    found = drawn(Made(adapters=(NASTY, "serial"), seeds=(0, 1), samplers=("x\x07\u202e<b>",)))
    assert {"anytime", "phases", "gantt", "paired", "quality_price", "learning"} <= set(found)
    for drawing in found.values():
        texts = [element.text or "" for element in elements(drawing) if element.tag == f"{SVG}text"]
        assert any("a<scri" in text for text in texts), drawing.name
        assert "<script" not in drawing.svg
        everything = [drawing.svg.replace("\n", ""), drawing.question, drawing.caption, drawing.alternative, drawing.note]
        everything += [cell for row in drawing.rows for cell in row if isinstance(cell, str)]
        assert all(text.isprintable() for text in everything), drawing.name
    assert any("$x_1$" in str(cell) for cell in found["gantt"].rows[0])


def test_names_are_escaped_by_the_drawing_and_not_by_luck() -> None:
    with rules():
        sheet = Sheet("Which?", [1.0])
        sheet.panel(0, title="<b> & $x$").plot([1, 2], [1, 2])
        svg = to_svg(sheet, "x", "Which?", "None.")
    assert ">&lt;b&gt; &amp; $x$</text>" in svg


def test_settings_of_the_user_change_nothing_and_stay() -> None:
    def simple() -> str:
        with rules():
            sheet = Sheet("Which?", [1.0])
            axes = sheet.panel(0)
            axes.plot([1, 2], [1, 2])
            plain_numbers(axes)
            return to_svg(sheet, "x", "Which?", "None.")

    before = simple()
    with matplotlib.rc_context({"axes.facecolor": "red", "font.size": 30, "svg.fonttype": "path"}):
        assert simple() == before
        assert matplotlib.rcParams["font.size"] == 30


def test_no_global_figure_is_made(several: dict[str, Drawing]) -> None:
    import sys

    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()
