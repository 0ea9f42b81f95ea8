"""Incumbents are steps: nothing is interpolated, and failures count."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuneoff.judge.stats.location import middle
from tuneoff.tell.plots.drawing import combined, order_statistic, spread_out

FINITE = st.floats(-1e6, 1e6)


def test_the_median_changes_only_where_a_run_improves() -> None:
    runs = [[(1.0, 0.5), (5.0, 0.9)], [(2.0, 0.6)], [(3.0, 0.7)]]
    found = {x: median for x, median, _, _ in combined(runs, -math.inf)}
    assert found == {1.0: -math.inf, 2.0: 0.5, 3.0: 0.6, 5.0: 0.7}


def test_a_failed_run_stays_the_worst() -> None:
    runs = [[(1.0, 0.5)], [(1.0, 0.6)], []]
    assert combined(runs, -math.inf) == [(1.0, 0.5, -math.inf, 0.6)]
    assert combined([[(1.0, 0.5)], []], -math.inf)[0][1] == -math.inf  # half of the runs failed
    assert combined([[], []], -math.inf) == []


def test_points_of_many_runs_are_limited_and_exact() -> None:
    draw = random.Random(0)
    runs = [sorted((draw.random(), draw.random()) for _ in range(20)) for _ in range(100)]
    found = combined(runs, -math.inf, most=50)
    assert len(found) == 50
    for x, median, low, high in found:
        values = [max((step for step in run if step[0] <= x), default=(0.0, -math.inf))[1] for run in runs]
        assert median == middle(values)
        assert low <= median <= high
        assert (low, high) == (order_statistic(values, 0.25), order_statistic(values, 0.75))


@given(st.lists(FINITE, min_size=1, max_size=30))
def test_the_middle_is_the_median(values: list[float]) -> None:
    assert middle(values) == pytest.approx(statistics.median(values))


def test_quartiles_are_values_of_runs() -> None:
    values = [1.0, 2.0, 3.0, 4.0, math.inf]
    assert order_statistic(values, 0.25) == 2.0
    assert order_statistic(values, 0.75) == 4.0
    assert order_statistic(values, 1.0) == math.inf


@given(st.integers(0, 500), st.integers(1, 100))
def test_places_are_spread_out_with_both_ends(count: int, most: int) -> None:
    places = spread_out(count, most)
    assert len(places) == min(count, most) or len(places) == len(set(places)) <= most
    assert places == sorted(set(places))
    assert all(0 <= place < count for place in places)
    if count > 1 and most > 1:
        assert places[0] == 0
        assert places[-1] == count - 1
