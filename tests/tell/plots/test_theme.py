"""Colours can be told apart on both papers and by all eyes, and are never the only sign."""

from __future__ import annotations

from itertools import combinations

import pytest

from tell.plots.colours import EYES, contrast, difference
from tuneoff.tell.plots.theme import DARK, LIGHT, MUTED, SERIES, css, styles

ENOUGH = 3.0  # WCAG 2, graphics
APART = 15.0  # a distance in CIELAB that is seen at a glance
THEMES = {"light": LIGHT, "dark": DARK}


@pytest.mark.parametrize("theme", THEMES)
def test_every_series_stands_out_from_the_paper(theme: str) -> None:
    colours = THEMES[theme]
    for name in ("muted", *(name for name in colours if name.startswith("c"))):
        assert contrast(colours[name], colours["paper"]) >= ENOUGH, name


@pytest.mark.parametrize("theme", THEMES)
def test_text_is_read_well_on_the_paper(theme: str) -> None:
    assert contrast(THEMES[theme]["ink"], THEMES[theme]["paper"]) >= 7


def test_a_pale_colour_would_be_caught() -> None:
    assert contrast("#ffff00", LIGHT["paper"]) < ENOUGH
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("eye", EYES)
def test_no_two_series_look_alike(theme: str, eye: str) -> None:
    series = [colour for name, colour in THEMES[theme].items() if name.startswith("c")]
    assert min(difference(one, other, eye) for one, other in combinations(series, 2)) >= APART


def test_red_and_green_of_equal_lightness_would_be_caught() -> None:
    assert difference("#a04000", "#607000", "deutan") < APART <= difference("#a04000", "#607000", "usual")


def test_both_themes_have_the_same_variables() -> None:
    assert set(LIGHT) == set(DARK)
    assert len(set(LIGHT.values())) == len(LIGHT)  # a colour stands for one variable
    assert all(f"--{name}: {colour};" in css("dark") for name, colour in DARK.items())


def test_twenty_adapters_differ_in_more_than_colour() -> None:
    found = styles((f"a{number}", f"a{number}", 0, False) for number in range(20))
    assert len({(style.marker, style.dashes) for style in found.values()}) == 20
    assert len({style.colour for style in found.values()}) == len(SERIES)


def test_an_adapter_keeps_its_look_when_others_follow() -> None:
    few = styles([("serial", "serial", 0, False), ("optuna", "optuna", 0, False)])
    more = styles([("serial", "serial", 0, False), ("optuna", "optuna", 0, False), ("x", "x", 0, False)])
    assert {label: more[label] for label in few} == few


def test_the_same_entry_again_has_the_colour_of_the_first_and_is_hollow() -> None:
    found = styles([("serial", "serial", 0, False), ("serial#2", "serial#2", 1, False)])
    assert found["serial#2"].colour == found["serial"].colour
    assert found["serial#2"].hollow
    assert found["serial#2"].fill != found["serial"].fill


def test_what_is_emulated_is_grey_and_hollow() -> None:
    style = styles([("katib@emulated", "katib@emulated", 0, True)])["katib@emulated"]
    assert style.colour == MUTED
    assert style.fill != style.colour
