"""The page in a real browser, opened from disk: nothing in the console, nothing over the network, readable everywhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from builders.page_folders import failed, folder, never, specs
from corpus.scenarios import ADDED, LENGTHS
from corpus.scenarios import curve as curve_of
from tell.page.browsing import CONTRAST, CUT, FOCUSED, LOW_CONTRAST, OVERFLOW, UNFOLD, WIDE, WORDS
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.choice.choose import choose
from tuneoff.tell.page import report as page_report
from tuneoff.tell.page.report import render, write_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = pytest.mark.slow
PHONE = {"width": 360, "height": 740}
DESK = {"width": 1280, "height": 900}
A4 = {"width": 703, "height": 1031}  # portrait, without margins
MOST_SCREENS, MOST_WORDS = 4, 250
Open = Callable[..., "Page"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a matrix with failures, by the real answers."""
    planned = specs(["serial", "optuna", "an-adapter-with-a-rather-long-name"], 11)
    changes = {4: failed("failed", "the framework said: <no> & \x1b[31m"), 32: never}
    return write_report(folder(tmp_path_factory.mktemp("browser") / "r", planned, changes))


@pytest.fixture(scope="module")
def curve(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a matrix over the length of its trials."""
    folder = tmp_path_factory.mktemp("curve")
    report = folder / "curve.html"
    report.write_text(render(page_report.page(choose(answers(curve_of(*LENGTHS))), folder)))
    return report


@pytest.fixture
def said() -> list[str]:
    """Return what the pages of a test said in the console and asked of the network."""
    return []


@pytest.fixture
def opened(browser: Browser, path: Path, said: list[str]) -> Iterator[Open]:
    """Return a function that opens the page; at the end nothing may have been said in the console, nor asked of the network."""
    contexts: list[BrowserContext] = []

    def open_page(of: Path = path, *, viewport: dict[str, int] = DESK, **options: Any) -> Page:
        context = browser.new_context(viewport=viewport, **options)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.on("request", lambda request: said.append(request.url) if request.url != of.as_uri() else None)
        page.goto(of.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []


@pytest.mark.parametrize(("scheme", "viewport"), [("light", DESK), ("dark", PHONE)], ids=["desk", "phone"])
def test_the_page_is_not_blank_and_its_texts_stand_out(opened: Open, scheme: str, viewport: dict[str, int]) -> None:
    page = opened(color_scheme=scheme, viewport=viewport)
    drawn = len(page.screenshot())
    page.evaluate(UNFOLD)
    seen, found = page.evaluate(CONTRAST)
    assert seen > 200
    assert found == []
    page.evaluate("() => document.body.replaceChildren()")
    assert drawn > 4 * len(page.screenshot())  # what a blank page comes to


def test_light_and_dark_differ_and_the_attribute_wins(opened: Open) -> None:
    background = "() => getComputedStyle(document.body).backgroundColor"
    light, dark = opened(color_scheme="light"), opened(color_scheme="dark")
    shown = light.evaluate(background), dark.evaluate(background)
    assert shown[0] != shown[1]
    for page, theme in ((light, "dark"), (dark, "light")):
        page.evaluate(f"() => {{ document.documentElement.dataset.theme = '{theme}'; }}")
    assert (dark.evaluate(background), light.evaluate(background)) == shown


def test_what_is_loaded_against_the_policy_low_contrast_and_a_wide_page_are_found(opened: Open, said: list[str]) -> None:
    page = opened(viewport=PHONE)
    page.evaluate("() => { const one = new Image(); one.src = 'http://127.0.0.1:9/x.png'; document.body.append(one); }")
    page.evaluate(
        "() => { const one = document.createElement('script'); one.text = 'window.ran = 1'; document.body.append(one); }"
    )
    assert sum("Content Security Policy" in text for text in said) == 2
    assert page.evaluate("() => window.ran") is None
    said.clear()
    page.evaluate(LOW_CONTRAST)
    assert page.evaluate(CONTRAST)[1] != []
    page.evaluate(WIDE)
    assert page.evaluate(OVERFLOW) > 0


@pytest.mark.parametrize("width", [320, 768])
def test_nothing_sticks_out_of_the_page(opened: Open, width: int) -> None:
    page = opened(viewport={"width": width, "height": 740})
    page.evaluate(UNFOLD)
    assert page.evaluate(OVERFLOW) <= 0
    assert page.evaluate(CUT) == []
    page.add_style_tag(content="caption { max-width: none; min-width: 1400px; }")  # control
    assert page.evaluate(CUT) != []


def test_without_scripts_every_table_is_there(opened: Open) -> None:
    with_scripts, without = opened(), opened(java_script_enabled=False)
    tables = with_scripts.locator("table").count()
    assert tables >= 7
    assert without.locator("table").count() == tables
    assert without.locator("table.runs tbody tr").count() == 33
    assert without.locator("table.main .strip").first.is_visible()
    assert without.locator("button, select, input").count() == 0
    assert with_scripts.locator("button").count() > 0


def test_the_keyboard_reaches_the_skip_link_and_the_regions_that_scroll(opened: Open) -> None:
    page = opened(viewport=PHONE)
    page.keyboard.press("Tab")
    tag, css, _, is_outlined = page.evaluate(FOCUSED)
    assert (tag, css, is_outlined) == ("A", "skip", True)
    assert page.locator(".skip").bounding_box()["y"] >= 0  # type: ignore[index]
    page.keyboard.press("Enter")
    assert page.evaluate(FOCUSED)[0] == "MAIN"
    for _ in range(60):
        page.keyboard.press("Tab")
        _, _, role, is_outlined = page.evaluate(FOCUSED)
        assert is_outlined
        if role == "region":
            break
    assert role == "region"
    before = page.evaluate("() => document.activeElement.scrollLeft")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("(before) => document.activeElement.scrollLeft > before", arg=before)


@pytest.mark.parametrize("java_script_enabled", [True, False])
def test_a_dot_leads_to_its_run_which_is_unfolded(opened: Open, java_script_enabled: bool) -> None:
    page = opened(java_script_enabled=java_script_enabled)
    dot = page.locator("table.main .strip a").first
    target = dot.get_attribute("href") or ""
    assert "seed" in (dot.locator("title").text_content() or "")
    dot.click()
    page.wait_for_function("(id) => document.querySelector(id).checkVisibility()", arg=target) if java_script_enabled else None
    assert page.locator(target).is_visible()


def first_column(page: Page) -> list[str]:
    return page.locator("table.main tbody tr[data-framework]:visible .called").all_inner_texts()


def test_the_table_sorts_and_the_address_keeps_it(opened: Open) -> None:
    page = opened()
    page.locator("table.main th button", has_text="framework").click()
    up = first_column(page)
    page.locator("table.main th button", has_text="framework").click()
    assert first_column(page) == up[::-1] != up
    assert "sort=-1" in page.url
    page.reload()
    assert first_column(page) == up[::-1]


def test_the_reader_chooses_the_reference_the_metric_and_what_is_shown(opened: Open) -> None:
    page = opened()
    reference, metric = page.locator(".controls select").nth(0), page.locator(".controls select").nth(1)
    before = page.locator("table.main td.ratio").all_inner_texts()
    other = reference.locator("option:not(:checked)").last.get_attribute("value")
    assert other is not None
    reference.select_option(other)
    assert page.locator("table.main td.ratio").all_inner_texts() != before
    assert page.locator(f"tr[data-framework='{other}'] td.ratio").inner_text().strip() == "1x"
    assert page.locator("table.main .reference").inner_text() in page.locator(f"tr[data-framework='{other}'] th").inner_text()
    metric.select_option("overhead")
    assert page.locator("table.main [data-metric='quality']:visible").count() == 0
    assert page.locator("table.main td [data-metric='overhead']:visible").count() == 3
    page.locator(".controls input[type=checkbox]").first.uncheck()
    assert len(first_column(page)) == 2
    assert [word in page.url for word in ("reference=", "metric=overhead", "hide=")] == [True] * 3
    page.reload()
    assert len(first_column(page)) == 2
    assert page.locator("table.main td [data-metric='overhead']:visible").count() == 2
    assert page.locator(f"tr[data-framework='{other}'] td.ratio").inner_text().strip() == "1x"


def test_the_keyboard_alone_sorts_and_chooses_and_the_table_of_runs_sorts_and_filters(opened: Open) -> None:
    page = opened()
    page.locator(".controls select").first.focus()
    page.keyboard.press("ArrowDown")
    assert "reference=" in page.url
    page.locator("table.main th button").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("table.main th[aria-sort='ascending']").count() == 1
    page.evaluate(UNFOLD)
    page.locator("table.runs th button", has_text="seed").click()
    page.locator("table.runs th button", has_text="seed").click()
    assert page.locator("table.runs th[aria-sort='descending']").count() == 1
    assert page.locator("table.runs tbody tr").first.locator("td").nth(2).inner_text() == "10"
    page.locator(".filter input").fill("failed")
    assert page.locator("table.runs tbody tr:visible").count() == 1
    assert page.locator(".filter span").inner_text().strip() == "1 of 33"


def test_it_prints_on_one_page_and_unfolded_without_a_blank_one(opened: Open) -> None:
    page = opened(color_scheme="dark", viewport=A4)
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True))) <= 2
    page.evaluate(UNFOLD)
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True))) <= 12
    page.emulate_media(media="print")
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator(".controls").is_visible()
    assert page.locator("h1").is_visible()
    assert page.evaluate(CONTRAST)[1] == []
    assert page.evaluate(OVERFLOW) <= 0
    page.add_style_tag(content=".runs td { min-width: 40mm !important; }")  # control
    assert page.evaluate(OVERFLOW) > 0


def test_folded_it_is_short_and_has_few_words(opened: Open) -> None:
    page = opened()
    assert page.evaluate("() => document.documentElement.scrollHeight") <= MOST_SCREENS * DESK["height"]
    assert page.evaluate(WORDS) <= MOST_WORDS
    page.evaluate(UNFOLD)
    assert page.evaluate(WORDS) > MOST_WORDS  # control: what is folded is counted once it is open


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_a_curve_over_trial_length_is_drawn_told_and_hidden(opened: Open, curve: Path, scheme: str, width: int) -> None:
    viewport = {"width": width, "height": 900}
    page = opened(curve, viewport=viewport, color_scheme=scheme)
    points = page.locator("[aria-labelledby=shares] .point")
    assert points.count() == len(ADDED) * len(LENGTHS)
    point = points.first.locator("circle")
    stroke = "(one) => getComputedStyle(one).strokeWidth"
    before = point.evaluate(stroke)
    point.hover()
    assert point.evaluate(stroke) != before
    assert "0.10 s" in (points.first.locator("title").text_content() or "")
    assert page.evaluate(OVERFLOW) <= 0
    assert page.evaluate(CONTRAST)[1] == []
    page.locator(".controls input[type=checkbox]").first.uncheck()
    assert page.locator("[aria-labelledby=shares] .point:visible").count() == (len(ADDED) - 1) * len(LENGTHS)
    without = opened(curve, viewport=viewport, java_script_enabled=False)
    assert without.locator("table.shares tbody td:visible").count() == len(ADDED) * len(LENGTHS)
