"""The search space as Ray draws it, by its own random search and by its Optuna searcher. Starts no Ray instance."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest
from scipy import stats

from builders.ray_tune_specs import run_spec
from tuneoff.base.identity import canonical_json
from tuneoff.experiment.space import Categorical, Constant, Float, IntegerLog, SearchSpace, points, stepped
from tuneoff.experiment.translation import ListTranslation, SpaceTranslation, translation_of
from tuneoff_adapters.optuna_samplers import SAMPLER_OPTIONS

ray = pytest.importorskip("ray")

DRAWS = 3000
LEAST_P = 1e-4
SPACE = SearchSpace(
    {
        "linear": Float(low=-1.0, high=3.0),
        "log/rate": Float(low=1e-5, high=1e-1, log=True),  # Ray itself splits names at "/"
        "log_integer": IntegerLog(low=1, high=8),
        "integer": stepped(1, 4, 1, integer=True),
        "float_step": stepped(0.1, 1.0, 0.3, integer=False),
        "unordered": Categorical(choices=("a", None, [64, 32])),
        "ordered": Categorical(choices=("s", "m", "l"), ordered=True),
        "grid_search": stepped(0, 1, 1, integer=True),  # a word of Ray's
        "fixed": Constant(value=[1, "two"]),
    }
)
KEYS = {f"p{number}": name for number, name in enumerate(SpaceTranslation(SPACE).native)}


def by_basic_variants() -> Iterator[dict[str, Any]]:
    """Yield what BasicVariantGenerator draws: it takes its values from this generator, with this kind of state."""
    import numpy
    from ray.tune.search.variant_generator import generate_variants

    from tuneoff_adapters.ray_tune.searchers import param_space

    space = param_space(SpaceTranslation(SPACE), KEYS)
    state = numpy.random.default_rng(7)
    while True:
        for _, drawn in generate_variants({"config": space}, random_state=state):
            yield drawn["config"]


def by_optuna_search() -> Iterator[dict[str, Any]]:
    from optuna.samplers import RandomSampler
    from ray.tune.search.optuna import OptunaSearch

    from tuneoff_adapters.ray_tune.searchers import param_space

    searcher = OptunaSearch(sampler=RandomSampler(seed=7))
    searcher.set_search_properties("objective", "min", param_space(SpaceTranslation(SPACE), KEYS))
    number = 0
    while True:
        yield searcher.suggest(str(number))
        number += 1


@pytest.fixture(scope="module", params=[by_basic_variants, by_optuna_search], ids=["BasicVariantGenerator", "OptunaSearch"])
def drawn(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    translation = SpaceTranslation(SPACE)
    source = request.param()
    return [translation.decode({name: values[key] for key, name in KEYS.items()}) for values, _ in zip(source, range(DRAWS))]  # noqa: B905


def column(drawn: Sequence[dict[str, Any]], name: str) -> list[Any]:
    return [configuration[name] for configuration in drawn]


def uniformity(values: Sequence[Any], choices: Iterable[Any], probability: Callable[[Any], float] | None = None) -> float:
    """Return the p-value of the hypothesis that `values` are drawn from `choices`, equally likely where nothing else is said."""
    choices = list(choices)
    counts = Counter(canonical_json(value) for value in values)
    expected = [len(values) * (probability(choice) if probability else 1 / len(choices)) for choice in choices]
    return float(stats.chisquare([counts[canonical_json(choice)] for choice in choices], expected).pvalue)


@pytest.mark.slow
def test_every_draw_lies_in_the_space(drawn: list[dict[str, Any]]) -> None:
    for configuration in drawn:
        SPACE.check(configuration)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["integer", "float_step", "unordered", "ordered", "grid_search"])
def test_every_point_is_equally_likely_the_end_points_too(drawn: list[dict[str, Any]], name: str) -> None:
    assert uniformity(column(drawn, name), points(SPACE.dimensions[name])) > LEAST_P


@pytest.mark.slow
def test_log_integers_have_the_probabilities_that_core_defines(drawn: list[dict[str, Any]]) -> None:
    dimension = SPACE.dimensions["log_integer"]
    assert isinstance(dimension, IntegerLog)
    assert uniformity(column(drawn, "log_integer"), range(1, 9), dimension.probability) > LEAST_P


@pytest.mark.slow
def test_floats_are_uniform_and_log_uniform(drawn: list[dict[str, Any]]) -> None:
    assert stats.kstest(column(drawn, "linear"), stats.uniform(-1.0, 4.0).cdf).pvalue > LEAST_P
    assert stats.kstest(column(drawn, "log/rate"), stats.loguniform(1e-5, 1e-1).cdf).pvalue > LEAST_P


@pytest.mark.slow
def test_a_skewed_draw_would_be_caught(drawn: list[dict[str, Any]]) -> None:
    from ray import tune

    quantized = [round((tune.quniform(0.0, 0.75, 0.25).sample()) / 0.25) for _ in range(DRAWS)]  # starves both end points
    assert uniformity(quantized, range(4)) < 1e-12
    generator = random.Random(0)
    floored = [int(9.0 ** generator.random()) for _ in range(DRAWS)]  # Ray's own log integer
    assert uniformity(floored, range(1, 9), IntegerLog(low=1, high=8).probability) < 1e-12
    assert stats.kstest(column(drawn, "log/rate"), stats.uniform(1e-5, 1e-1).cdf).pvalue < 1e-12


def test_unordered_choices_have_no_order_for_a_model() -> None:
    from ray.tune.search.sample import Categorical as RayCategorical
    from ray.tune.search.sample import Integer

    from tuneoff_adapters.ray_tune.searchers import param_space

    space = param_space(SpaceTranslation(SPACE), KEYS)
    kinds = {name: type(space[key]) for key, name in KEYS.items()}
    assert (kinds["unordered"], kinds["ordered"], kinds["integer"]) == (RayCategorical, Integer, Integer)


def test_a_list_becomes_a_grid_over_its_index_in_its_order() -> None:
    from ray.tune.search.variant_generator import generate_variants

    from tuneoff_adapters.ray_tune.searchers import param_space

    listed = [{"x": 0.5}, {"x": 0.1}, {"x": 0.9}, {"x": 0.1}]
    translation = translation_of(run_spec(sampler="fixed", configurations=listed))
    assert isinstance(translation, ListTranslation)
    space = param_space(translation, {"p0": "configuration_index"})
    drawn = [variant["config"]["p0"] for _, variant in generate_variants({"config": space})]
    assert [translation.decode({"configuration_index": index}) for index in drawn] == listed


def test_a_space_of_constants_still_has_something_to_draw() -> None:
    from tuneoff_adapters.ray_tune.searchers import param_space

    (domain,) = param_space(SpaceTranslation(SearchSpace({"only": Constant(value=1)})), {}).values()
    assert domain.sample() == 0


@pytest.mark.parametrize("sampler", ["tpe", "gp", "cmaes", "sobol"])
def test_the_same_seed_gives_the_same_configurations(sampler: str) -> None:
    from tuneoff_adapters.ray_tune.searchers import optuna_search, param_space

    def first(seed: int) -> list[Any]:
        searcher = optuna_search(sampler, {}, seed)
        searcher.set_search_properties("objective", "min", param_space(SpaceTranslation(SPACE), KEYS))
        return [searcher.suggest(str(number)) for number in range(3)]

    assert first(7) == first(7)
    assert first(7) != first(8)


@pytest.mark.parametrize("name", list(SAMPLER_OPTIONS))
def test_every_option_reaches_its_sampler(name: str) -> None:
    from tuneoff_adapters.ray_tune.searchers import optuna_search

    given: dict[str, Any] = {
        option: rule.type == "flag" if rule.least is None else int(rule.least) for option, rule in SAMPLER_OPTIONS[name].items()
    }
    optuna_search(name, given, seed=0)
