"""The tests themselves: worked examples, core's probabilities, and how often they reject what is right."""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from builders.spaces import dimensions
from trust.space_test.every_kind import SPACE
from trust.space_test.null_simulation import false_alarms
from tuneoff.base.space import Categorical, Dimension, Float, IntegerLog, points, stepped
from tuneoff.cli.selection import overridden_plan
from tuneoff.trust.space_test.statistics import (
    ValuePlaces,
    cells,
    distribution_test,
    end_cells,
    independence_tests,
    is_continuous,
    rejection_threshold,
    share_below,
    size_of,
)


def test_the_space_of_these_tests_is_the_files() -> None:
    file = Path(__file__).parents[3] / "benchmarks" / "every_kind.yaml"
    assert overridden_plan(file).counted[0].spec.experiment.search_space.to_json() == SPACE.to_json()


def test_the_rule_of_benjamini_and_hochberg_on_their_own_example() -> None:
    values = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    assert rejection_threshold(values, 0.05) == 0.0095
    assert rejection_threshold(values[4:], 0.05) == 0.0
    assert rejection_threshold([], 0.05) == 0.0
    assert rejection_threshold([0.5, 0.0], 0.02) == 0.0  # rejects the p-value 0, and nothing else


def test_a_chi_squared_test_is_the_textbooks() -> None:
    counts = {1: 44, 2: 56, 3: 48, 4: 52}
    die = stepped(1, 4, 1, integer=True)
    drawn = [float(value - 1) for value, count in counts.items() for _ in range(count)]
    test = distribution_test("die", die, drawn)
    assert test.p == pytest.approx(stats.chisquare(list(counts.values())).pvalue)
    assert test.statistic == pytest.approx((36 + 36 + 4 + 4) / 50)


def test_a_test_of_independence_is_the_contingency_tables() -> None:
    generator = random.Random(1)
    two, three = Categorical(choices=(False, True)), Categorical(choices=("a", "b", "c"))
    one, other = ([float(generator.randrange(size)) for _ in range(500)] for size in (2, 3))
    (test,) = independence_tests({"two": two, "three": three}, {"two": one, "three": other})
    counts = Counter(zip(one, other, strict=True))
    table = [[counts[row, column] for column in range(3)] for row in range(2)]
    assert test.p == pytest.approx(stats.chi2_contingency(table, correction=False).pvalue)


def test_a_pair_of_which_one_never_varies_has_no_p_value() -> None:
    two = Categorical(choices=(False, True))
    (test,) = independence_tests({"one": two, "other": two}, {"one": [0.0] * 200, "other": [0.0, 1.0] * 100})
    assert (test.p, test.text) == (None, "one of the two never varies")


@given(dimension=dimensions(), draws=st.integers(100, 10_000))
def test_cells_have_cores_probabilities_and_are_never_too_small(dimension: Dimension, draws: int) -> None:
    if is_continuous(dimension) or size_of(dimension) < 2:
        return
    for into in filter(None, (cells(dimension, 5 / draws), end_cells(dimension, max(0.01, 10 / draws)))):
        assert sum(into.shares) == pytest.approx(1.0)
        assert len(into.shares) == 1 or min(into.shares) * draws >= 5 * (1 - 1e-6)
        assert into.starts[0] == 0
        assert list(into.starts) == sorted(set(into.starts))
    if size_of(dimension) <= 1000:
        ranks = range(size_of(dimension))
        shares = [share_below(dimension, rank + 1) - share_below(dimension, rank) for rank in ranks]
        given_by_core = (
            [dimension.probability(value) for value in points(dimension)]
            if isinstance(dimension, IntegerLog)
            else [1 / len(shares)] * len(shares)
        )
        assert shares == pytest.approx(given_by_core)


@given(dimension=dimensions(), unit=st.floats(0.0, 1.0, exclude_max=True))
def test_every_value_of_a_dimension_has_its_place(dimension: Dimension, unit: float) -> None:
    value = dimension.from_unit(unit)
    place = ValuePlaces(dimension)(value)
    assert place is not None
    if is_continuous(dimension):
        low, high = dimension.low, dimension.high  # type: ignore[union-attr]
        near = 1e-6 + 8 * sys.float_info.epsilon * max(abs(low), abs(high)) / (high - low)  # a narrow range has few floats
        assert place == pytest.approx(unit, abs=near) or value in (low, high)
    else:
        assert list(points(dimension))[int(place)] == value


def test_a_logarithmic_range_of_two_floats_has_both_places() -> None:
    high = math.nextafter(17.0, 18.0)
    places = ValuePlaces(Float(low=17.0, high=high, log=True))
    assert (places(17.0), places(high)) == (0.0, 1.0)
    wide = ValuePlaces(Float(low=5e-324, high=1e300, log=True))
    assert (wide(5e-324), wide(1e300)) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("dimension", "stranger"),
    [
        (stepped(0, 9, 1, integer=True), 10),
        (stepped(0, 9, 1, integer=True), 3.0),
        (stepped(0.0, 1.0, 0.25, integer=False), 1),
        (stepped(0.0, 1.0, 0.25, integer=False), 0.3),
        (Float(low=0.0, high=1.0), 1),
        (Float(low=0.0, high=1.0), math.nan),
        (Float(low=0.0, high=1.0), 1.0000001),
        (Float(low=0.0, high=1.0), None),
        (IntegerLog(low=1, high=10), 0),
        (IntegerLog(low=1, high=10), True),
        (Categorical(choices=(1, 2)), True),
        (Categorical(choices=(1, 2)), 1.0),
        (Categorical(choices=("a",)), {1, 2}),
    ],
)
def test_what_is_no_value_of_a_dimension_has_no_place(dimension: Dimension, stranger: object) -> None:
    assert ValuePlaces(dimension)(stranger) is None


@pytest.mark.slow
def test_right_draws_are_rarely_rejected() -> None:
    assert len(false_alarms(repetitions=40, draws=1000, first_seed=0)) <= 4  # 0.8 expected; 5 or more: one time in 700
