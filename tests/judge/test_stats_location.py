"""The median, and a share: agreement with scipy and numpy, failures, small n, and properties."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuneoff.judge.stats.location import coverage, depth, median, students_t, wilson
from tuneoff.judge.stats.sign_flip import generator

stats = pytest.importorskip("scipy.stats")
finite = st.floats(-1e6, 1e6)
samples = st.lists(finite, min_size=2, max_size=30)


def draws(*key: str, n: int) -> list[float]:
    return [float(value) for value in generator(*key).lognormal(size=n)]


@pytest.mark.parametrize("n", [2, 5, 10, 19, 20, 33])
def test_the_estimates_are_those_of_numpy(n: int) -> None:
    values = draws("estimates", str(n), n=n)
    assert median(values, 0.95).estimate == pytest.approx(float(np.median(values)))


@pytest.mark.parametrize("n", [2, 3, 5])
def test_the_interval_of_few_values_is_that_of_scipys_t_test(n: int) -> None:
    values = draws("few", str(n), n=n)
    found, expected = median(values, 0.95), stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    middle = found.estimate
    assert (found.low, found.high) == pytest.approx((min(expected.low, middle), max(expected.high, middle)))
    lows, highs = students_t(np.array([values, values[::-1]]), 0.95)
    assert (lows.tolist(), highs.tolist()) == (pytest.approx([expected.low] * 2), pytest.approx([expected.high] * 2))


def test_the_depth_of_order_statistics_is_that_of_published_tables() -> None:
    """Ranks of the 95 % interval of the median at n = 6, 10, 20 and 30: 1, 2, 6 and 10."""
    assert [depth(n, 0.95) for n in (5, 6, 10, 20, 30)] == [0, 1, 2, 6, 10]
    assert coverage(10, 2) == pytest.approx(1 - 2 * (1 + 10) / 1024)


def test_the_interval_of_the_median_lies_between_two_pairs_of_order_statistics() -> None:
    values = sorted(draws("order", n=20))
    found = median(values, 0.95)
    assert values[5] <= found.low <= values[6]
    assert values[13] <= found.high <= values[14]


def test_one_value_is_an_estimate_without_an_interval() -> None:
    found = median([3.0], 0.95)
    assert (found.estimate, found.low, found.high, found.n) == (3.0, -math.inf, math.inf, 1)
    assert "no interval" in found.method


def test_one_value_needs_no_numpy_which_a_command_of_one_run_would_wait_for() -> None:
    program = "import sys; from tuneoff.judge.stats.location import median; median([1.0], 0.95); print('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False\n"


def test_values_without_a_spread_keep_half_a_grid_step() -> None:
    for n in (2, 5, 12, 25):
        found = median([0.9] * n, 0.95, grid_step=1 / 360)
        assert (found.low, found.high) == pytest.approx((0.9 - 1 / 720, 0.9 + 1 / 720))


def test_a_failure_is_the_worst_value_and_never_changes_the_other_side_of_the_median() -> None:
    values = sorted(draws("failures", n=12))
    with_one = median([*values[:-1], math.inf], 0.95)
    assert with_one == median(values, 0.95)
    with_many = median([*values[:6], *[math.inf] * 6], 0.95)
    assert (with_many.estimate, with_many.high) == (math.inf, math.inf)
    assert with_many.low == median(values, 0.95).low


def test_a_failure_among_few_values_leaves_no_bound_on_its_side() -> None:
    found = median([1.0, 2.0, 3.0, math.inf], 0.95)
    assert (found.estimate, found.high) == (2.5, math.inf)
    assert found.low == median([1.0, 2.0, 3.0, 3.0], 0.95).low
    assert median([-math.inf, 1.0, 2.0, 3.0], 0.95).low == -math.inf


def test_opposite_failures_cancel() -> None:
    values = [-math.inf, -math.inf, math.inf, math.inf]
    found = median(values, 0.95)
    assert (found.estimate, found.low, found.high) == (0.0, -math.inf, math.inf)
    for n in (3, 10, 25):
        found = median([math.inf] * n, 0.95)
        assert (found.estimate, found.high) == (math.inf, math.inf)


@pytest.mark.parametrize("values", [[], [1.0, math.nan]])
def test_nothing_and_nan_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="`values` must hold"):
        median(values, 0.95)


@settings(max_examples=40)
@given(values=samples, shift=st.integers(-1000, 1000))
def test_a_shift_moves_the_interval_and_a_permutation_does_not(values: list[float], shift: int) -> None:
    found, moved, turned = (median(list(x), 0.95) for x in (values, [v + shift for v in values], values[::-1]))
    assert turned == found
    size = max(abs(v) for v in values) + abs(shift) + 1
    for name in ("estimate", "low", "high"):
        assert getattr(moved, name) == pytest.approx(getattr(found, name) + shift, abs=1e-7 * size)


def test_keys_are_told_apart_where_their_parts_meet_and_no_global_state_is_used() -> None:
    before = np.random.get_state()[1].tolist()  # type: ignore[index]
    firsts = {key: generator(*key).random() for key in ((), ("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("3:abc",))}
    assert len(set(firsts.values())) == len(firsts)
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index]


def test_wilsons_interval_of_known_cases() -> None:
    """R. G. Newcombe, Statist. Med. 17 (1998) 857, Table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29."""
    for successes, n, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        found = wilson(successes, n, 0.95)
        assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)
    assert wilson(7, 7, 0.95).high == 1.0
    with pytest.raises(ValueError, match="successes=3"):
        wilson(3, 2, 0.95)


@given(n=st.integers(1, 50), data=st.data())
def test_wilson_mirrors_and_stays_between_0_and_1(n: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, n))
    found, mirrored = wilson(successes, n, 0.95), wilson(n - successes, n, 0.95)
    assert 0 <= found.low <= found.estimate <= found.high <= 1
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((found.low, found.high))
