"""Every value stands on its axis, and ticks are few and round."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuneoff.tell.plots.drawing import FAR, MOST_TICKS, scale


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=20))
def test_every_value_stands_on_the_axis_in_its_order(values: list[float]) -> None:
    axis = scale(values)
    assert axis is not None
    places = [axis.at(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(0 <= place <= 1 for place in places)
    assert all(0 <= place <= 1 for place, _ in axis.ticks)


def test_an_axis_is_logarithmic_only_where_values_are_far_apart() -> None:
    near, far, negative = scale([1, FAR]), scale([1, FAR + 1]), scale([-1, 1000])
    assert near is not None
    assert far is not None
    assert negative is not None
    assert (near.is_log, far.is_log, negative.is_log) == (False, True, False)
    assert far.at(math.sqrt(far.low * far.high)) == pytest.approx(0.5)


def test_ticks_are_few_and_round_and_differ() -> None:
    for values, texts in (
        ([1, 9], ("2", "4", "6", "8")),
        ([150.4, 151.1], ("150.4", "150.6", "150.8", "151")),
        ([0.001, 900], ("0.001", "0.01", "0.1", "1", "10", "100")),
    ):
        axis = scale(values)
        assert axis is not None
        assert tuple(text for _, text in axis.ticks) == texts
    assert len(texts) <= MOST_TICKS + 1


def test_without_a_finite_value_there_is_no_axis() -> None:
    assert scale([]) is None
    assert scale([math.inf]) is None
    assert scale([3.0]) is not None
