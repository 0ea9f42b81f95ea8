"""The statistics behind the speed table, on samples whose answers are known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.speed.statistics import estimate, ratios, side_by_side, slope


def test_the_median_of_an_even_number_of_values_lies_between_the_middle_two() -> None:
    assert estimate([4.0, 1.0, 3.0, 2.0]).value == 2.5


def test_the_median_of_one_value_is_that_value_and_has_no_interval() -> None:
    result = estimate([7.0])
    assert (result.value, result.low, result.high, result.count) == (7.0, None, None, 1)


@pytest.mark.parametrize(("count", "low", "high"), [(6, 1, 6), (10, 2, 9), (20, 6, 15), (100, 40, 61)])
def test_the_median_interval_has_the_ranks_of_the_sign_test_tables(count: int, low: int, high: int) -> None:
    result = estimate([float(rank) for rank in range(1, count + 1)])
    assert (result.low, result.high) == (low, high)


def test_five_values_are_too_few_for_an_interval_of_the_median() -> None:
    result = estimate([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (result.low, result.high) == (None, None)


def test_a_high_quantile_is_interpolated_and_needs_many_values_for_its_interval() -> None:
    values = [float(value) for value in range(1, 101)]
    result = estimate(values, at=0.95)
    assert result.value == pytest.approx(95.05)
    assert result.low is not None
    assert result.high is not None
    assert result.low < 95 < result.high
    assert estimate(values[:20], at=0.95).high is None


def test_an_empty_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        estimate([])


@pytest.mark.parametrize("at", [0.0, 1.0, -0.5])
def test_a_quantile_outside_of_the_open_unit_interval_is_refused(at: float) -> None:
    with pytest.raises(ValueError, match="0 < at < 1"):
        estimate([1.0], at=at)


def test_ratios_are_taken_pair_by_pair() -> None:
    assert ratios([2.0, 9.0], [1.0, 3.0]) == [2.0, 3.0]


def test_ratios_of_unequal_numbers_of_values_are_refused() -> None:
    with pytest.raises(ValueError):
        ratios([1.0], [1.0, 2.0])


def test_the_order_of_the_sides_rotates_so_that_each_is_first_equally_often() -> None:
    calls: list[str] = []

    def side(name: str) -> Callable[[], str]:
        def run() -> str:
            calls.append(name)
            return name

        return run

    said: list[tuple[int, str, str]] = []
    results = side_by_side({name: side(name) for name in "abc"}, 3, lambda *of: said.append(of))
    assert "".join(calls) == "abcbcacab"
    assert said[:3] == [(0, "a", "a"), (0, "b", "b"), (0, "c", "c")]
    assert results == {name: [name] * 3 for name in "abc"}


def test_rotation_cancels_a_steady_drift() -> None:
    moment = 0.0

    def takes() -> float:
        nonlocal moment
        moment += 1.0
        return 100.0 + moment  # the machine gets slower and slower

    taken = side_by_side({"a": takes, "b": takes}, 20)
    assert estimate(ratios(taken["a"], taken["b"])).value == pytest.approx(1.0, abs=1e-3)


def test_the_slope_of_a_line_is_found_and_noise_around_zero_gives_none() -> None:
    assert slope([0, 1, 2, 3], [5, 7, 9, 11]) == pytest.approx(2.0)
    assert slope([1, 1], [0, 5]) is None
    assert slope([1], [5]) is None
