"""Equal numbers with rounding, numbers on a grid, and arithmetic with failures."""

from __future__ import annotations

import math

import numpy as np

from tuneoff.judge.stats.location import middle
from tuneoff.judge.stats.paired import without_rounding


def test_sizes_that_differ_in_their_last_bits_are_one_size() -> None:
    values = np.array([0.3 - 0.2, 0.0 - 0.1, 0.3 - 0.1 - 0.2, 0.01, math.inf, -math.inf])
    assert values[0] != -values[1]  # or there would be nothing to show
    clean, step = without_rounding(values, 0.0, 1.0)
    assert clean[0] == -clean[1] > 0
    assert (clean[2], clean[3], clean[4], clean[5], step) == (0.0, 0.01, math.inf, -math.inf, 0.0)


def test_a_difference_above_rounding_is_kept() -> None:
    clean, _ = without_rounding(np.array([1e-9, -2e-9]), 0.0, 1.0)
    assert clean.tolist() == [1e-9, -2e-9]


def test_differences_on_a_grid_are_counted_in_steps() -> None:
    clean, step = without_rounding(np.array([301 / 360 - 300 / 360, 0.0, -math.inf]), 1 / 360, 1.0)
    assert (clean.tolist(), step) == ([1.0, 0.0, -math.inf], 1 / 360)
    assert without_rounding(np.array([0.4 / 360]), 1 / 360, 1.0)[1] == 0.0


def test_opposite_infinite_values_cancel() -> None:
    assert middle([math.inf, -math.inf]) == 0.0
    assert middle([math.inf, 1.0]) == math.inf
