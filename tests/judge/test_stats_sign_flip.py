"""The sign-flip test: all flips counted by hand, the interval that inverts it, units, failures, drawn flips."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuneoff.judge.stats.sign_flip import DRAWS, MOST_EXACT, generator, least_p, sign_flip

INF = math.inf


def flips(differences: list[float], weights: list[float], units: list[int]) -> float:
    """Return the p of all flips, one by one."""
    names = sorted(set(units))
    sums = [sum(w * d for w, d, unit in zip(weights, differences, units, strict=True) if unit == name) for name in names]
    observed = abs(sum(sums))
    found = [abs(sum(sign * one for sign, one in zip(signs, sums, strict=True))) for signs in product((1, -1), repeat=len(sums))]
    return sum(one >= observed - 1e-12 for one in found) / len(found)


@settings(max_examples=40)
@given(
    rows=st.lists(st.tuples(st.integers(-200, 300), st.sampled_from([0.5, 1.0]), st.integers(0, 6)), min_size=2, max_size=12),
    alpha=st.sampled_from([0.05, 0.2, 0.5]),
)
def test_it_is_the_test_of_all_flips_and_its_interval_inverts_it(rows: list[tuple[float, float, int]], alpha: float) -> None:
    differences, weights, units = [row[0] / 100 for row in rows], [row[1] for row in rows], [row[2] for row in rows]
    found = sign_flip(differences, weights, units, alpha)
    assert found.p == pytest.approx(flips(differences, weights, units))
    assert (found.p <= alpha) == (found.interval.low > 0 or found.interval.high < 0)
    assert found.interval.n == len(set(units))
    for bound, inwards in ((found.interval.low, 1e-6), (found.interval.high, -1e-6)):
        if math.isfinite(bound) and found.interval.high - found.interval.low > 1e-5:
            inside = sign_flip([one - bound - inwards for one in differences], weights, units, alpha)
            outside = sign_flip([one - bound + inwards for one in differences], weights, units, alpha)
            assert outside.p <= alpha < inside.p


def test_what_shares_a_unit_is_no_further_evidence() -> None:
    for units in (3, 10, MOST_EXACT, MOST_EXACT + 1, 36):
        assert sign_flip([1.0] * units, [1.0] * units, range(units), 0.05).p == pytest.approx(least_p(units), rel=0.01)
    assert (least_p(3), least_p(36)) == (0.25, 2 / (DRAWS + 1))
    together = sign_flip([1.0] * 36, [1.0] * 36, [place % 3 for place in range(36)], 0.05)
    assert together.p == 0.25
    assert (together.interval.low, together.interval.high, together.interval.n) == (-INF, INF, 3)


def test_identical_data_and_what_is_rounding_of_them_never_win() -> None:
    for differences in ([0.0] * 36, [1e-15] * 36):
        found = sign_flip(differences, [1.0] * 36, range(36), 0.05, rounding_scale=1.0)
        assert (found.p, found.interval.low, found.interval.estimate, found.interval.high) == (1.0, 0.0, 0.0, 0.0)


@settings(max_examples=10)
@given(seed=st.integers(0, 1000))
def test_order_and_direction_change_nothing(seed: int) -> None:
    differences = generator("flips", str(seed)).normal(0.3, 1.0, 36).tolist()
    weights, units = [1.0] * 36, list(range(36))
    found = sign_flip(differences, weights, units, 0.05)
    assert sign_flip(differences[::-1], weights, units[::-1], 0.05) == found
    mirrored = sign_flip([-one for one in differences], weights, units, 0.05)
    assert mirrored.p == found.p
    assert -mirrored.interval.high == pytest.approx(found.interval.low)


def test_equal_samples_are_rejected_as_often_as_alpha_says() -> None:
    draw = generator("null of flips")
    rejected = [sign_flip(draw.standard_t(2, 20).tolist(), [1.0] * 20, range(20), 0.1).p <= 0.1 for _ in range(1_000)]
    assert 0.07 < np.mean(rejected) < 0.13


def test_a_failure_counts_as_the_greatest_difference_and_nothing_but_failures_is_infinite() -> None:
    found = sign_flip([-0.1] * 11 + [INF], [1.0] * 12, range(12), 0.05)
    assert found.interval.estimate == pytest.approx((-1.1 + 0.1) / 12)
    worse = sign_flip([-0.1] * 11 + [INF], [1.0] * 12, range(12), 0.05, least=1.0)
    assert worse.interval.estimate == pytest.approx((-1.1 + 1.0) / 12)
    alone = sign_flip([INF] * 12, [1.0] * 12, range(12), 0.05)
    assert (alone.p, alone.interval.low, alone.interval.estimate) == (2 / 2**12, INF, INF)
    assert sign_flip([INF, -INF] * 6, [1.0] * 12, range(12), 0.05).p == 1.0


def test_what_is_no_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="alpha"):
        sign_flip([1.0], [1.0], [0], 0.0)
    with pytest.raises(ValueError, match="at least one"):
        sign_flip([], [], [], 0.05)


def test_a_half_step_widens_the_interval_by_itself_and_p_is_of_the_nearest_centre_within_it() -> None:
    values = [1.0, 1.2, 0.9, 1.4, 1.1, 0.8, 1.3, 1.05]
    plain, stepped = (sign_flip(values, [1.0] * 8, range(8), 0.05, half_step=half) for half in (0.0, 0.5))
    assert stepped.interval.low == pytest.approx(plain.interval.low - 0.5)
    assert stepped.interval.high == pytest.approx(plain.interval.high + 0.5)
    for half in (0.5, 1.0, 2.0):
        moved = sign_flip([value - half for value in values], [1.0] * 8, range(8), 0.05)
        expected = moved.p if moved.interval.estimate > 0 else 1.0
        assert sign_flip(values, [1.0] * 8, range(8), 0.05, half_step=half).p == pytest.approx(expected)
