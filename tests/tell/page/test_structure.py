"""What is on the page, in which order, and that it is sound HTML that loads nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.page_folders import folder, specs
from tell.page.conftest import SVG, drawing, made_page
from tell.page.documents import Document, faults
from tuneoff.tell.page.figures import FIRST_ROWS, MOST_BYTES_OF_ONE, Room, UnsafeDrawingError, check_safe, plot
from tuneoff.tell.page.render import content_hash, resource, style

SECTIONS = ["answer", "verdicts", "frameworks", "plots", "runs", "environment", "basis", "limits"]


@pytest.mark.parametrize("which", ["judged", "unjudged"])
def test_the_page_is_sound_and_loads_nothing(which: str, request: pytest.FixtureRequest) -> None:
    assert faults(request.getfixturevalue(which)) == []


def test_the_sections_are_in_their_order(judged: str) -> None:
    found = [one.attributes["id"] for one in Document(judged).all("h2")]
    assert found == SECTIONS


def test_every_figure_of_a_run_leads_to_its_row(judged: str) -> None:
    document = Document(judged)
    rows = {one.attributes["id"] for one in document.all("tr") if one.attributes.get("id", "").startswith("run-")}
    links = [one.attributes.get("href", "") for one in document.all("a")]
    assert len(rows) == 24
    assert rows == {link[1:] for link in links if link.startswith("#run-")}
    files = [link for link in links if link.endswith("/run.json")]
    assert len(set(files)) == 24
    assert all(link.startswith("../runs/") for link in files)


def test_each_file_that_a_link_names_is_there(tmp_path: Path) -> None:
    path = folder(tmp_path / "r", specs(["serial"], 2))
    links = [one.attributes.get("href", "") for one in Document(made_page(path)).all("a")]
    files = {link for link in links if link.startswith("..")}
    assert len(files) == 2
    assert all((path / "report" / link).resolve().is_file() for link in files)


def test_below_ten_seeds_the_page_says_that_nothing_is_judged(judged: str, unjudged: str) -> None:
    assert "Not judged." in unjudged
    assert "At a glance" not in unjudged
    assert "Not judged." not in judged
    assert "At a glance" in judged


def test_an_outcome_is_told_by_symbol_and_word(judged: str) -> None:
    outcomes = [one for one in Document(judged).all("span") if one.attributes.get("class", "").startswith("outcome")]
    assert outcomes
    assert all(len(one.text.split()) >= 2 for one in outcomes)


def test_what_is_estimated_is_marked_and_what_is_missing_has_its_reason(judged: str) -> None:
    cells = [one for one in Document(judged).all("td") if one.text == "–" and one.attributes.get("title")]
    assert any("its record has no such metric" in one.attributes["title"] for one in cells)


def test_a_plot_shows_its_first_rows_and_names_its_files(judged: str) -> None:
    assert SVG in judged
    assert f"The first {FIRST_ROWS} of 40 rows." in judged
    assert 'href="plots/line.csv"' in judged


def test_a_drawing_that_is_too_large_is_in_its_file_alone(tmp_path: Path) -> None:
    large = SVG.replace("M0 0L9 9", "M0 0" + "L9 9" * (MOST_BYTES_OF_ONE // 4))
    text = made_page(folder(tmp_path / "r", specs(["serial"], 1)), drawing(svg=large))
    assert "too large for the page" in text
    assert len(text) < 200_000
    assert faults(text) == []


def test_drawings_together_have_an_end() -> None:
    room, size = Room(), MOST_BYTES_OF_ONE
    svg = SVG.replace("M0 0L9 9", "M" + "0" * (size - len(SVG)))
    shown = [bool(plot(drawing(svg=svg), room).svg) for _ in range(5)]
    assert shown == [True, True, True, False, False]


@pytest.mark.parametrize(
    "svg",
    [
        SVG.replace("<path", "<script>alert(1)</script><path"),
        SVG.replace("<path", "<foreignObject/><path"),
        SVG.replace("<path", '<image href="x.png"/><path'),
        SVG.replace("<path", '<path onload="alert(1)"'),
        SVG.replace("<path", '<use href="https://example.org/x"/><path'),
        SVG.replace("<path", '<path style="fill: url( https://example.org )"'),
        SVG.replace("<path", "<style>*{color:red}</style><path"),
        SVG.replace("</svg>", ""),
        "<p>no drawing</p>",
        "<!DOCTYPE svg>" + SVG,
    ],
)
def test_a_drawing_that_could_do_more_than_be_looked_at_is_refused(svg: str) -> None:
    check_safe(SVG)
    with pytest.raises(UnsafeDrawingError, match="a drawing must"):
        check_safe(svg)


def test_the_policy_allows_the_script_of_the_page_and_no_other(judged: str) -> None:
    (script,) = Document(judged).all("script")
    assert f"script-src '{content_hash(script.text)}'" in judged
    assert content_hash(script.text + " ") not in judged
    assert "innerHTML" not in resource("report.js")


def test_both_themes_have_all_colours() -> None:
    names = {f"--{name}:" for name in ("ink", "paper", "grid", "c1", "c8", "link", "better", "worse")}
    light, _, dark = style().partition("prefers-color-scheme")
    assert all(name in light and name in dark for name in names - {"--link:", "--better:", "--worse:"})
    assert all(style().count(name) >= 3 for name in names)


def test_a_plot_of_single_runs_leads_to_those_that_have_a_row(tmp_path: Path) -> None:
    planned = specs(["serial"], 2)
    runs = (("serial, seed 0", planned[0].run_id), ("serial, seed 1", "elsewhere"))
    text = made_page(folder(tmp_path / "r", planned), drawing(runs=runs))
    assert f'Shown: <a href="#run-{planned[0].run_id}">serial, seed 0</a>; serial, seed 1.' in text
