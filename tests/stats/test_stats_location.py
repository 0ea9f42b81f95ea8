"""Median and IQM: agreement with scipy and numpy, failures, small n, and properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuneoff.judge.stats.interval import Interval
from tuneoff.judge.stats.keyed import generator
from tuneoff.judge.stats.location import iqm, median, trimmed_mean
from tuneoff.judge.stats.order import coverage, depth

stats = pytest.importorskip("scipy.stats")
finite = st.floats(-1e6, 1e6)
samples = st.lists(finite, min_size=2, max_size=30)


def draws(*key: str, n: int) -> list[float]:
    return [float(value) for value in generator(*key).lognormal(size=n)]


@pytest.mark.parametrize("n", [2, 5, 10, 19, 20, 33])
def test_the_estimates_are_those_of_numpy_and_scipy(n: int) -> None:
    values = draws("estimates", str(n), n=n)
    assert median(values, 0.95).estimate == pytest.approx(float(np.median(values)))
    assert iqm(values, 0.95).estimate == pytest.approx(float(stats.trim_mean(values, 0.25)))
    assert trimmed_mean(values, 0.95, trim=0.1).estimate == pytest.approx(float(stats.trim_mean(values, 0.1)))


@pytest.mark.filterwarnings("ignore:Precision loss")  # of the sample that has no spread
@pytest.mark.parametrize("trim", [0.0, 0.1, 0.2, 0.25])
def test_yuens_interval_inverts_scipys_trimmed_t_test(trim: float) -> None:
    """A shift at a bound has exactly the p-value that the interval's confidence leaves."""
    values, far = draws("yuen", str(trim), n=17), [-1e9] * 400
    found = trimmed_mean(values, 0.95, trim=trim)
    for bound in (found.low, found.high):
        # A second sample without spread turns the two-sample test into that of one sample.
        result = stats.ttest_ind(values, [bound] * len(far), trim=trim, equal_var=False)
        assert result.pvalue == pytest.approx(0.05)


def test_the_bootstrap_agrees_with_that_of_scipy() -> None:
    values = draws("bootstrap", n=25)
    found = iqm(values, 0.95, key=("a group",))
    expected = stats.bootstrap(
        (values,), lambda x, axis: stats.trim_mean(x, 0.25, axis=axis), n_resamples=9999, method="percentile", rng=1
    ).confidence_interval
    width = expected.high - expected.low
    assert found.low == pytest.approx(expected.low, abs=0.05 * width)
    assert found.high == pytest.approx(expected.high, abs=0.05 * width)


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
    for found in (median([3.0], 0.95), iqm([3.0], 0.95)):
        assert (found.estimate, found.low, found.high, found.n) == (3.0, -math.inf, math.inf, 1)
        assert "no interval" in found.method


def test_values_without_a_spread_keep_half_a_grid_step() -> None:
    for find in (median, iqm):
        for n in (2, 5, 12, 25):
            found = find([0.9] * n, 0.95, grid_step=1 / 360)
            assert (found.low, found.high) == pytest.approx((0.9 - 1 / 720, 0.9 + 1 / 720))


def test_a_failure_is_the_worst_value_and_never_changes_the_other_side_of_the_median() -> None:
    values = sorted(draws("failures", n=12))
    with_one = median([*values[:-1], math.inf], 0.95)
    assert with_one == median(values, 0.95)
    with_many = median([*values[:6], *[math.inf] * 6], 0.95)
    assert (with_many.estimate, with_many.high) == (math.inf, math.inf)
    assert with_many.low == median(values, 0.95).low


@pytest.mark.parametrize("n", [10, 12, 19, 20, 30])
def test_the_iqm_of_too_many_failures_is_infinite_and_keeps_a_lower_bound(n: int) -> None:
    values = draws("many failures", str(n), n=n)
    failures = 2 * n // 5
    found = iqm([*values[failures:], *[math.inf] * failures], 0.95)
    assert (found.estimate, found.high) == (math.inf, math.inf)
    assert math.isfinite(found.low)


def test_failures_that_may_reach_the_middle_half_leave_no_upper_bound() -> None:
    """Two of twelve are cut off with the worst quarter here, but another twelve runs may well have four."""
    values = draws("two failures", n=12)
    found = iqm([*values[:10], math.inf, math.inf], 0.95)
    assert math.isfinite(found.estimate)
    assert found.high == math.inf
    assert math.isfinite(iqm([*values[:11], math.inf], 0.95).high)


def test_only_failures_are_infinite_altogether() -> None:
    for find in (median, iqm):
        for n in (3, 10, 25):
            found = find([math.inf] * n, 0.95)
            assert found.estimate == math.inf
            assert found.high == math.inf


def test_opposite_failures_cancel() -> None:
    values = [-math.inf, -math.inf, math.inf, math.inf]
    for find in (median, iqm):
        found = find(values, 0.95)
        assert (found.estimate, found.low, found.high) == (0.0, -math.inf, math.inf)


@pytest.mark.parametrize("values", [[], [1.0, math.nan]])
def test_nothing_and_nan_are_refused(values: list[float]) -> None:
    for find in (median, iqm):
        with pytest.raises(ValueError, match="`values` must hold"):
            find(values, 0.95)


def test_a_trim_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"0 <= trim < 0\.5"):
        trimmed_mean([1.0, 2.0], 0.95, trim=0.5)


@settings(max_examples=40)
@given(values=samples, shift=st.integers(-1000, 1000))
def test_a_shift_moves_the_interval_and_a_permutation_does_not(values: list[float], shift: int) -> None:
    for find in (median, iqm):
        found, moved, turned = (find(list(x), 0.95) for x in (values, [v + shift for v in values], values[::-1]))
        assert turned == found
        size = max(abs(v) for v in values) + abs(shift) + 1
        for name in ("estimate", "low", "high"):
            assert getattr(moved, name) == pytest.approx(getattr(found, name) + shift, abs=1e-7 * size)


@settings(max_examples=40)
@given(values=samples, confidence=st.sampled_from([0.8, 0.9, 0.95]))
def test_more_confidence_is_never_a_shorter_interval(values: list[float], confidence: float) -> None:
    for find in (trimmed_mean_of_a_quarter, iqm):
        narrow, wide = find(values, confidence), find(values, 0.99)
        assert wide.low <= narrow.low
        assert wide.high >= narrow.high


def trimmed_mean_of_a_quarter(values: list[float], confidence: float) -> Interval:
    return trimmed_mean(values, confidence, trim=0.25)


def test_equal_keys_draw_equal_numbers_and_others_do_not() -> None:
    values = draws("keys", n=25)
    assert iqm(values, 0.95, key=("a", "b")) == iqm(values, 0.95, key=("a", "b"))
    assert iqm(values, 0.95, key=("a", "b")) != iqm(values, 0.95, key=("ab",))


def test_keys_are_told_apart_where_their_parts_meet_and_no_global_state_is_used() -> None:
    before = np.random.get_state()[1].tolist()  # type: ignore[index]
    firsts = {key: generator(*key).random() for key in ((), ("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("3:abc",))}
    assert len(set(firsts.values())) == len(firsts)
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index]
