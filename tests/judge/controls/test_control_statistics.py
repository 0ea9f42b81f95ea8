"""The statistics of the controls: worked examples, agreement with scipy, and what they answer to data of a known kind."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import combinations

import pytest

from tuneoff.judge.controls.compute import holm, kolmogorov_smirnov
from tuneoff.judge.stats.equivalence import EquivalenceAnswer, equivalence, mean_interval, seeds_for_equivalence

stats = pytest.importorskip("scipy.stats")
ALPHA = 0.05
SAMPLE = [0.011, -0.004, 0.002, 0.007, -0.009, 0.003, 0.0, 0.005]


def draws(generator: random.Random, n: int, mean: float = 0.0, deviation: float = 1.0) -> list[float]:
    return [generator.gauss(mean, deviation) for _ in range(n)]


def test_kolmogorov_smirnov_of_a_worked_example() -> None:
    found = kolmogorov_smirnov([1, 2, 3, 4], [3.5, 5, 6, 7])
    assert found.distance == 0.75  # below 3.5 lie three of four, and none of the others
    assert found.p == pytest.approx(2 * 8 / math.comb(8, 4))  # 8 of the 70 orders reach so far up, as many down
    assert (found.n, found.m) == (4, 4)


def test_holm_of_a_worked_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_equivalence_is_two_one_sided_tests_of_scipy() -> None:
    found = equivalence(SAMPLE, 0.01, ALPHA)
    above = stats.ttest_1samp(SAMPLE, -0.01, alternative="greater").pvalue
    below = stats.ttest_1samp(SAMPLE, 0.01, alternative="less").pvalue
    assert found.p == pytest.approx(max(above, below))
    expected = stats.ttest_1samp(SAMPLE, 0).confidence_interval(0.9)
    assert (found.interval.low, found.interval.high) == pytest.approx((expected.low, expected.high))
    wide = equivalence([0.05, -0.05, 0.02], 0.01, ALPHA)
    assert (wide.verdict, (wide.seeds_needed or 0) > 3) == (EquivalenceAnswer.NOT_SHOWN, True)


@pytest.mark.parametrize("mean", [-0.02, -0.01, -0.004, 0.0, 0.006, 0.01, 0.03])
def test_the_verdict_is_where_the_interval_lies(mean: float) -> None:
    found = equivalence([value + mean for value in SAMPLE], 0.01, ALPHA)
    low, high = found.interval.low, found.interval.high
    inside, outside = low > -0.01 and high < 0.01, low > 0.01 or high < -0.01
    expected = EquivalenceAnswer.EQUIVALENT if inside else EquivalenceAnswer.DIFFERENT if outside else EquivalenceAnswer.NOT_SHOWN
    assert found.verdict is expected
    assert found.p is not None
    assert (found.p < ALPHA) == inside


@pytest.mark.parametrize(
    ("difference", "times", "verdict"),
    [
        (0.0, 5, EquivalenceAnswer.EQUIVALENT),
        (0.0, 4, EquivalenceAnswer.NOT_SHOWN),
        (0.5, 5, EquivalenceAnswer.DIFFERENT),
        (-0.5, 4, EquivalenceAnswer.NOT_SHOWN),
        (0.01, 9, EquivalenceAnswer.NOT_SHOWN),
    ],
)
def test_without_spread_only_several_pairs_show_something(difference: float, times: int, verdict: EquivalenceAnswer) -> None:
    found = equivalence([difference] * times, 0.01, ALPHA)
    assert (found.verdict, found.p, found.seeds_needed) == (verdict, None, None)


FRACTIONS = [(one / 360, (one - 5) / 360) for one in range(300, 360)]  # 5 of 360 images, between two adapters


def test_a_spread_that_is_rounding_alone_is_none() -> None:
    differences = [one - other for one, other in FRACTIONS]
    assert len(set(differences)) > 1  # else there is nothing to see through
    for pair in combinations(differences, 2):
        found = equivalence(pair, 0.01, ALPHA, scale=1.0)
        assert (found.verdict, found.p, found.seeds_needed) == (EquivalenceAnswer.NOT_SHOWN, None, None)
        assert found.interval.low == found.interval.estimate == found.interval.high
    several = equivalence(differences[:5], 0.01, ALPHA, scale=1.0)
    assert (several.verdict, several.p) == (EquivalenceAnswer.DIFFERENT, None)
    assert equivalence([0.97 - 0.95, 0.35 - 0.33], 0.01, ALPHA).verdict is EquivalenceAnswer.NOT_SHOWN


def test_a_difference_that_is_rounding_alone_is_zero() -> None:
    noise = [0.0, 2**-53, -(2**-53), 0.0]
    assert mean_interval(noise, 0.9, scale=0.9).estimate == 0.0
    assert equivalence(noise, 0.01, ALPHA, scale=0.9).verdict is EquivalenceAnswer.NOT_SHOWN


def test_a_difference_equal_to_the_margin_but_for_rounding_is_on_its_bound() -> None:
    assert 0.97 - 0.96 > 0.01
    assert equivalence([0.97 - 0.96] * 9, 0.01, ALPHA, scale=0.97).verdict is EquivalenceAnswer.NOT_SHOWN


def test_a_small_spread_of_small_scores_is_a_spread() -> None:
    small = [value * 1e-9 for value in SAMPLE]
    found = mean_interval(small, 0.9, scale=1e-9)
    assert found.low < found.high


def test_what_cannot_be_judged_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        mean_interval([0.1], 0.9)
    with pytest.raises(ValueError, match=r"alpha < 0\.5"):
        equivalence(SAMPLE, 0.01, 0.5)


# --- data of a known kind; the bounds are five standard errors of the stated rate ---


def bound(rate: float, times: int) -> float:
    return rate + 5 * math.sqrt(rate * (1 - rate) / times)


@pytest.mark.slow
def test_a_difference_as_large_as_the_margin_is_seldom_called_equivalent_and_seldom_different() -> None:
    generator, times = random.Random(2), 1000
    found = Counter(equivalence(draws(generator, 10, 1.0), 1.0, ALPHA).verdict for _ in range(times))
    assert found[EquivalenceAnswer.EQUIVALENT] / times <= bound(ALPHA, times)
    assert found[EquivalenceAnswer.DIFFERENT] / times <= bound(ALPHA, times)
    assert found[EquivalenceAnswer.NOT_SHOWN] / times > 0.8


def test_as_many_seeds_as_are_said_to_be_needed_show_equivalence() -> None:
    generator, times = random.Random(4), 400
    n = seeds_for_equivalence(1.0, 0.8, ALPHA)
    shown = sum(equivalence(draws(generator, n), 0.8, ALPHA).verdict is EquivalenceAnswer.EQUIVALENT for _ in range(times))
    assert shown / times == pytest.approx(0.9, abs=0.08)
