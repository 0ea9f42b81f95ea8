"""What a number of seeds can find: closed forms, agreement with simulation, and that both functions say the same."""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest

from benchmarks.simulation.distributions import NORMAL
from benchmarks.simulation.verdicts import power, signed_ranks
from tuneoff.judge.stats.power import detectable, seeds_needed

ALPHA = 0.05 / 15


def test_too_few_seeds_find_nothing() -> None:
    assert detectable(9, ALPHA) == math.inf
    assert detectable(10, ALPHA / 3) == math.inf


def test_ten_seeds_find_what_has_one_sign_in_all_of_them() -> None:
    """At 10 seeds the test wins only where all differences have one sign: the tenth power of one sign's probability."""
    assert detectable(10, ALPHA) == pytest.approx(NormalDist().inv_cdf(0.8 ** (1 / 10)), abs=0.02)


@pytest.mark.parametrize("n", [12, 20, 40])
def test_the_detectable_difference_is_found_in_as_many_cases_as_said(n: int) -> None:
    assert power(signed_ranks, NORMAL, n, 3_000, size=detectable(n, ALPHA)) == pytest.approx(0.8, abs=0.03)
    assert power(signed_ranks, NORMAL, n, 3_000, size=0.8 * detectable(n, ALPHA)) < 0.75  # a smaller one is not


def test_simulation_and_approximation_meet_where_one_takes_over() -> None:
    assert detectable(31, ALPHA) == pytest.approx(detectable(30, ALPHA), rel=0.03)


def test_the_seeds_that_are_needed_find_it_and_one_less_does_not() -> None:
    for effect in (2.5, 1.0, 0.5, -0.5):
        seeds = seeds_needed(effect, ALPHA)
        assert seeds is not None
        assert detectable(seeds, ALPHA) <= abs(effect) < detectable(seeds - 1, ALPHA)


def test_no_number_of_seeds_finds_nothing() -> None:
    assert seeds_needed(0.0, ALPHA) is None
    assert seeds_needed(0.001, ALPHA) is None
