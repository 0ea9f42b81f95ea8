"""Colours can be told apart on both papers and by all eyes, and are never the only sign."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from tell.plots.colours import EYES, contrast, difference
from tuneoff.tell.plots.drawing import DARK, LIGHT, SERIES, css, styles

ENOUGH = 3.0  # WCAG 2, graphics
APART = 15.0  # a distance in CIELAB that is seen at a glance
THEMES = {"light": LIGHT, "dark": DARK}


@pytest.mark.parametrize("theme", THEMES)
def test_every_series_stands_out_from_the_paper(theme: str) -> None:
    colours = THEMES[theme]
    for name in ("muted", *SERIES):
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
    series = [THEMES[theme][name] for name in SERIES]
    assert min(difference(one, other, eye) for one, other in combinations(series, 2)) >= APART


def test_red_and_green_of_equal_lightness_would_be_caught() -> None:
    assert difference("#a04000", "#607000", "deutan") < APART <= difference("#a04000", "#607000", "usual")


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("eye", EYES)
def test_parts_of_a_job_that_follow_each_other_do_not_look_alike(theme: str, eye: str) -> None:
    parts = [THEMES[theme][f"part-{name}"] for name in ("start", "training", "waiting", "stop", "test")]
    assert min(difference(one, other, eye) for one, other in pairwise(parts)) >= APART


def test_no_part_of_a_job_has_the_colour_of_a_framework() -> None:
    for colours in THEMES.values():
        assert not {colours[name] for name in colours if name.startswith("part-")} & {colours[name] for name in SERIES}


def test_both_themes_have_the_same_variables() -> None:
    assert set(LIGHT) == set(DARK)
    assert all(f"--{name}: {colour};" in css("dark") for name, colour in DARK.items())


def test_sixteen_frameworks_differ_in_more_than_colour() -> None:
    found = styles((f"a{number}", 0, False) for number in range(16))
    assert len({(style.colour, style.dashes) for style in found.values()}) == 16
    assert {style.colour for style in found.values()} == set(SERIES)


def test_a_framework_keeps_its_look_when_others_follow() -> None:
    few = styles([("serial", 0, False), ("optuna", 0, False)])
    more = styles([("serial", 0, False), ("optuna", 0, False), ("x", 0, False)])
    assert {label: more[label] for label in few} == few


def test_the_same_entry_again_has_the_colour_of_the_first_and_other_dashes() -> None:
    found = styles([("serial", 0, False), ("serial#2", 1, False)])
    assert found["serial#2"].colour == found["serial"].colour
    assert found["serial#2"].dashes != found["serial"].dashes


def test_what_is_emulated_is_grey() -> None:
    assert styles([("katib@emulated", 0, True)])["katib@emulated"].colour == "muted"
