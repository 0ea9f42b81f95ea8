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
def test_colours_stand_out_from_the_paper_and_no_two_look_alike_to_any_eye(theme: str) -> None:
    colours = THEMES[theme]
    series = [colours[name] for name in SERIES]
    parts = [colours[f"part-{name}"] for name in ("start", "training", "waiting", "stop", "test")]
    assert min(contrast(colour, colours["paper"]) for colour in (colours["muted"], *series)) >= ENOUGH
    assert contrast(colours["ink"], colours["paper"]) >= 7
    for eye in EYES:
        assert min(difference(one, other, eye) for one, other in (*combinations(series, 2), *pairwise(parts))) >= APART
    assert not {*parts} & {*series}
    assert set(colours) == set(LIGHT)
    assert all(f"--{name}: {colour};" in css(theme) for name, colour in colours.items())  # type: ignore[arg-type]


def test_a_pale_colour_and_red_and_green_of_equal_lightness_would_be_caught() -> None:
    assert contrast("#ffff00", LIGHT["paper"]) < ENOUGH
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert difference("#a04000", "#607000", "deutan") < APART <= difference("#a04000", "#607000", "usual")


def test_a_framework_keeps_its_look_and_sixteen_differ_in_more_than_colour() -> None:
    found = styles((f"a{number}", 0, False) for number in range(16))
    assert len({(style.colour, style.dashes) for style in found.values()}) == 16
    assert {style.colour for style in found.values()} == set(SERIES)
    few = styles((f"a{number}", 0, False) for number in range(2))
    assert {label: found[label] for label in few} == few


def test_the_same_entry_again_has_the_colour_of_the_first_and_other_dashes_and_what_is_emulated_is_grey() -> None:
    found = styles([("serial", 0, False), ("serial#2", 1, False), ("katib@emulated", 0, True)])
    assert found["serial#2"].colour == found["serial"].colour
    assert found["serial#2"].dashes != found["serial"].dashes
    assert found["katib@emulated"].colour == "muted"
