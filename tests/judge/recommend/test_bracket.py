"""Only settings that surround the request are used; beyond them there is a refusal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuneoff.judge.recommend.request import NEAR, Bracket, bracket, spans


def points(*settings: tuple[float, float]) -> list[dict[str, tuple[float, float]]]:
    """Return settings of (workers, seconds per trial)."""
    return [{"workers": (workers, workers), "trial_seconds": (seconds, seconds)} for workers, seconds in settings]


GRID = points((1, 1), (4, 1), (1, 60), (4, 60))


@pytest.mark.parametrize(
    ("asked", "measured", "found"),
    [
        ({}, GRID, Bracket(used=(0, 1, 2, 3), is_exact=True)),
        ({"workers": 4}, GRID, Bracket(used=(1, 3), is_exact=True)),
        ({"workers": 4}, points((1, 1), (2, 1), (8, 1), (16, 1)), Bracket(used=(1, 2))),
        ({"workers": 2, "trial_seconds": 10}, GRID, Bracket(used=(0, 1, 2, 3))),
        ({"workers": 4, "trial_seconds": 1}, points((1, 1), (4, 60)), Bracket(outside={})),
    ],
    ids=["nothing asked", "measured there", "nearest on each side", "all corners", "each size in range, nothing around"],
)
def test_what_was_measured_at_the_request_is_used_else_what_surrounds_it(
    asked: dict[str, float], measured: list[dict[str, tuple[float, float]]], found: Bracket
) -> None:
    assert bracket(asked, measured) == found


@pytest.mark.parametrize("workers", [0.5, 5, 1000])
def test_beyond_what_was_measured_is_refused_with_the_range(workers: float) -> None:
    found = bracket({"workers": workers, "trial_seconds": 10}, GRID)
    assert not found.used
    assert found.outside == {"workers": (1, 4)}


def test_a_setting_without_an_asked_size_is_not_used() -> None:
    unknown = {"workers": (4.0, 4.0)}
    assert bracket({"workers": 4, "trial_seconds": 60}, [*GRID, unknown]).used == (3,)
    assert bracket({"trial_seconds": 60}, [unknown]).outside == {}


def test_trials_of_about_that_length_count_as_measured_but_not_more_workers() -> None:
    assert bracket({"trial_seconds": 60 * NEAR * 0.999}, GRID).is_exact
    assert bracket({"trial_seconds": 60 * NEAR * 1.001}, GRID).outside == {"trial_seconds": (1, 60)}
    assert bracket({"workers": 4.2}, GRID).outside == {"workers": (1, 4)}


SIZES = st.floats(0.01, 1000)


@given(st.lists(st.tuples(SIZES, SIZES), min_size=1, max_size=8), SIZES, SIZES)
def test_what_is_used_surrounds_the_request(settings: list[tuple[float, float]], workers: float, seconds: float) -> None:
    measured = points(*settings)
    asked = {"workers": workers, "trial_seconds": seconds}
    found = bracket(asked, measured)
    assert bool(found.used) != (found.outside is not None)
    if found.used:
        ranges = spans([measured[place] for place in found.used])
        assert ranges["workers"][0] <= workers <= ranges["workers"][1]
        assert ranges["trial_seconds"][0] / NEAR <= seconds <= ranges["trial_seconds"][1] * NEAR


@given(st.lists(st.tuples(SIZES, SIZES), min_size=1, max_size=8), SIZES)
def test_more_than_ever_measured_is_always_refused(settings: list[tuple[float, float]], more: float) -> None:
    most = max(workers for workers, _ in settings)
    assert not bracket({"workers": most + more}, points(*settings)).used
