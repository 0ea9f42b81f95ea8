"""The algorithms' distributions, determinism and peculiarities."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulated.katib_world import Object, experiment_named
from katib_emulation.suggestions import FinishedTrial, Grid, Parameter, algorithm_for, derived, draw

DRAWS = 4000


def parameter(
    kind: str, low: str = "", high: str = "", step: str = "", scale: str = "uniform", values: Sequence[str] = ()
) -> Parameter:
    space = {"min": low, "max": high, "step": step, "distribution": scale, "list": list(values)}
    return {"name": "p", "parameterType": kind, "feasibleSpace": space}


def draws_of(given: Parameter, seed: int = 3) -> list[str]:
    return [draw(given, Random(derived(seed, index))) for index in range(DRAWS)]


def is_uniform(fractions: Sequence[float]) -> bool:
    """Whether numbers in [0, 1] pass a Kolmogorov-Smirnov test for the uniform distribution (level about 1e-4)."""
    ordered, n = sorted(fractions), len(fractions)
    distance = max(max((i + 1) / n - x, x - i / n) for i, x in enumerate(ordered))
    return ordered[0] >= 0 and ordered[-1] <= 1 and distance * math.sqrt(n) < 2.23


def has_shares(values: Sequence[str], shares: dict[str, float]) -> bool:
    """Whether each value has its share of the draws, within five standard deviations, and no other value occurs."""
    counted, n = Counter(values), len(values)
    near = all(abs(counted[v] - n * p) < 5 * math.sqrt(n * p * (1 - p)) for v, p in shares.items())
    return near and set(counted) <= set(shares)


def test_a_uniform_double_is_uniform() -> None:
    assert is_uniform([(float(v) - 2) / 3 for v in draws_of(parameter("double", "2", "5"))])


def test_a_log_uniform_double_is_uniform_in_its_logarithm() -> None:
    values = [float(v) for v in draws_of(parameter("double", "1e-4", "1", scale="logUniform"))]
    assert is_uniform([math.log10(v) / 4 + 1 for v in values])
    assert not is_uniform([(v - 1e-4) / (1 - 1e-4) for v in values])  # the test itself must be able to fail


def test_the_uniformity_test_rejects_a_slight_slope() -> None:
    assert not is_uniform([float(v) ** 1.15 for v in draws_of(parameter("double", "0", "1"))])


def test_a_categorical_takes_all_values_alike() -> None:
    values = draws_of(parameter("categorical", values=["a", "b", "c", "d"]))
    assert has_shares(values, dict.fromkeys("abcd", 0.25))
    assert not has_shares(values, {"a": 0.2, "b": 0.3, "c": 0.25, "d": 0.25})


def test_integers_starve_at_both_ends_as_in_katib() -> None:
    values = draws_of(parameter("int", "1", "5"))
    assert has_shares(values, {"1": 0.125, "2": 0.25, "3": 0.25, "4": 0.25, "5": 0.125})
    assert not has_shares(values, {str(i): 0.2 for i in range(1, 6)})


def test_steps_count_from_zero_and_not_from_the_minimum_as_in_katib() -> None:
    assert set(draws_of(parameter("int", "16", "128", "32"))) == {"32", "64", "96", "128"}
    assert set(draws_of(parameter("double", "0.1", "0.5", "0.2"))) <= {"0.0", "0.2", "0.4", "0.6000000000000001"}


@pytest.mark.parametrize(
    "broken",
    [parameter("double", "0", "1", scale="logUniform"), parameter("categorical"), parameter("double", "a", "1"), parameter("x")],
)
def test_a_space_that_cannot_be_drawn_from_raises(broken: Parameter) -> None:
    with pytest.raises(ValueError):
        draw(broken, Random(1))


def grid_values(of: Parameter) -> set[str]:
    grid = Grid([of], "")
    return {grid.suggest(index, ())["p"] for index in range(grid.size)}


def test_grid_values_step_from_the_minimum() -> None:
    assert grid_values(parameter("int", "1", "4")) == {"1", "2", "3", "4"}
    assert grid_values(parameter("int", "16", "128", "32")) == {"16", "48", "80", "112"}
    with pytest.raises(ValueError, match="integers and categories only"):
        grid_values(parameter("double", "0", "1", "0.5"))


def suggest(experiment: Object, numbers: Sequence[int], uid: str = "u") -> list[dict[str, str]]:
    experiment["metadata"]["uid"] = uid
    for given_parameter in experiment["spec"]["parameters"]:
        given_parameter["feasibleSpace"].setdefault("distribution", "uniform")
    algorithm = algorithm_for(experiment)
    return [algorithm(number, []) for number in numbers]


def asking(algorithm: str, **settings_: str) -> Object:
    given_settings = [{"name": name, "value": value} for name, value in settings_.items()]
    parameters = [
        {"name": "a", "parameterType": "int", "feasibleSpace": {"min": "1", "max": "3"}},
        {"name": "b", "parameterType": "categorical", "feasibleSpace": {"list": ["x", "y"]}},
    ]
    return experiment_named(algorithm={"algorithmName": algorithm, "algorithmSettings": given_settings}, parameters=parameters)


def test_the_grid_visits_each_combination_once_in_shuffled_order() -> None:
    first = suggest(asking("grid", random_state="1"), range(6))
    assert len({tuple(c.items()) for c in first}) == 6
    assert list(first[0]) == ["a", "b"]
    in_order = sorted(first, key=lambda c: (c["a"], c["b"]))
    assert first != in_order


def test_a_grid_of_which_all_were_given_gives_any_that_has_not_succeeded() -> None:
    experiment = asking("grid", random_state="1")
    first = suggest(experiment, range(6))
    algorithm = algorithm_for(experiment)
    done = [FinishedTrial(f"t{number}", configuration, 0.5) for number, configuration in enumerate(first)]
    again = [algorithm(number, done[:4]) for number in range(6, 40)]
    assert {tuple(c.items()) for c in again} == {tuple(c.items()) for c in first[4:]}
    assert {tuple(algorithm(number, done).items()) for number in range(40, 200)} == {tuple(c.items()) for c in first}


@pytest.mark.parametrize("algorithm", ["random", "grid"])
@given(order=st.permutations(range(6)), seed=st.integers(0, 2**40))
@settings(max_examples=15, deadline=None)
def test_the_nth_suggestion_depends_on_nothing_but_its_number_and_the_seed(algorithm: str, order: list[int], seed: int) -> None:
    experiment = asking(algorithm, random_state=str(seed))
    straight = suggest(experiment, range(6), uid="one")
    shuffled = suggest(experiment, order, uid="two")
    assert [straight[number] for number in order] == shuffled


def test_without_a_seed_experiments_differ() -> None:
    experiment = experiment_named(algorithm={"algorithmName": "random"})
    assert suggest(experiment, range(3), uid="one") != suggest(experiment, range(3), uid="two")
