"""Core's own draws follow the distributions that core defines."""

from __future__ import annotations

import math
from collections import Counter
from itertools import islice

import pytest
from scipy import stats

from tuneoff.base.space import Categorical, Float, IntegerLog, SearchSpace, stepped
from tuneoff.experiment.strategies import draws, grid_order, sample_distinct, shuffled

DRAWS = 10_000
LEAST_P = 1e-4
WIDTH = IntegerLog(low=1, high=8)
SPACE = SearchSpace(
    {
        "rate": Float(low=1e-5, high=1e-1, log=True),
        "share": Float(low=-1.0, high=3.0),
        "width": WIDTH,
        "layers": stepped(1, 4, 1, integer=True),
        "dropout": stepped(0.0, 1.0, 0.25, integer=False),
        "kind": Categorical(choices=("a", None, 3)),
    }
)
POINTS: dict[str, list[object]] = {"layers": [1, 2, 3, 4], "dropout": [0.0, 0.25, 0.5, 0.75, 1.0], "kind": ["a", None, 3]}
EXPECTED: dict[str, dict[object, float]] = {
    "width": {value: WIDTH.probability(value) for value in range(1, 9)},
    **{name: dict.fromkeys(points, 1 / len(points)) for name, points in POINTS.items()},
}


def _p_of_counts(values: list[object], expected: dict[object, float]) -> float:
    counts = Counter(values)
    assert set(counts) <= set(expected)
    return float(stats.chisquare([counts[value] for value in expected], [p * len(values) for p in expected.values()]).pvalue)


@pytest.fixture(scope="module")
def sample() -> dict[str, list[object]]:
    configurations = list(islice(draws(SPACE, seed=7), DRAWS))
    return {name: [configuration[name] for configuration in configurations] for name in SPACE.dimensions}


@pytest.mark.parametrize("name", EXPECTED)
def test_values_follow_their_probabilities_and_the_ends_are_not_starved(sample: dict[str, list[object]], name: str) -> None:
    assert _p_of_counts(sample[name], EXPECTED[name]) > LEAST_P


def test_floats_are_uniform_on_their_scale(sample: dict[str, list[object]]) -> None:
    logarithms: list[float] = [(math.log(value) - math.log(1e-5)) / math.log(1e4) for value in sample["rate"]]  # type: ignore[arg-type]
    assert stats.kstest(logarithms, "uniform").pvalue > LEAST_P
    shares: list[float] = [(value + 1.0) / 4.0 for value in sample["share"]]  # type: ignore[operator]
    assert stats.kstest(shares, "uniform").pvalue > LEAST_P


def test_the_check_itself_sees_starved_ends() -> None:
    starved = [0.0] * 1290 + [0.25] * 2480 + [0.5] * 2540 + [0.75] * 2430 + [1.0] * 1260
    assert _p_of_counts(list(starved), EXPECTED["dropout"]) < 1e-100


def test_the_same_seed_gives_the_same_configurations_and_another_seed_others() -> None:
    first, again, other = (list(islice(draws(SPACE, seed), 20)) for seed in (1, 1, 2))
    assert first == again != other


def test_a_sample_has_no_repeats_and_exhausts_a_small_space() -> None:
    space = SearchSpace({"a": stepped(1, 4, 1, integer=True), "b": Categorical(choices=("x", "y"))})
    assert sorted(map(str, sample_distinct(space, 8, seed=0))) == sorted(map(str, space.grid()))


def test_a_grid_order_has_each_configuration_once_and_depends_on_the_seed() -> None:
    space = SearchSpace({"a": stepped(1, 10, 1, integer=True)})
    assert sorted(item["a"] for item in grid_order(space, 3)) == list(range(1, 11))
    assert grid_order(space, 3) == grid_order(space, 3) != grid_order(space, 4)
    orders = Counter(tuple(item["a"] for item in shuffled([{"a": 1}, {"a": 2}, {"a": 3}], seed)) for seed in range(3000))
    assert len(orders) == 6
    assert stats.chisquare(list(orders.values())).pvalue > LEAST_P
