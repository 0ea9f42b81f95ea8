"""The search space as Ray draws it, by its own random search and by its Optuna searcher. Starts no Ray instance."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from builders.spaces import SPACE as EVERY_KIND
from builders.specs import toy_spec
from contract.space import Drawn, SpaceContract, uniformity
from tuneoff.base.space import Constant, SearchSpace, stepped
from tuneoff.experiment.translation import ListTranslation, SpaceTranslation, translation_of
from tuneoff_adapters.optuna_samplers import SAMPLER_OPTIONS

ray = pytest.importorskip("ray")

DRAWS = 3000
SPACE = SearchSpace(
    {
        **dict(EVERY_KIND),
        "log/rate": EVERY_KIND.dimensions["log"],  # Ray itself splits names at "/"
        "grid_search": stepped(0, 1, 1, integer=True),  # a word of Ray's
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


@pytest.mark.slow
class TestSpace(SpaceContract):
    @pytest.fixture(scope="module", params=[by_basic_variants, by_optuna_search], ids=["BasicVariantGenerator", "OptunaSearch"])
    @classmethod
    def drawn(cls, request: pytest.FixtureRequest) -> Drawn:
        translation = SpaceTranslation(SPACE)
        drawn = islice(request.param(), DRAWS)
        return SPACE, [translation.decode({name: values[key] for key, name in KEYS.items()}) for values in drawn]

    def test_rays_own_quantized_integer_would_be_caught(self) -> None:
        from ray import tune

        quantized = [round((tune.quniform(0.0, 0.75, 0.25).sample()) / 0.25) for _ in range(DRAWS)]  # starves both end points
        assert uniformity(quantized, range(4)) < 1e-12


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
    translation = translation_of(toy_spec("ray-tune", sampler="fixed", configurations=listed))
    assert isinstance(translation, ListTranslation)
    space = param_space(translation, {"p0": "configuration_index"})
    drawn = [variant["config"]["p0"] for _, variant in generate_variants({"config": space})]
    assert [translation.decode({"configuration_index": index}) for index in drawn] == listed


def test_a_space_of_constants_still_has_something_to_draw() -> None:
    from tuneoff_adapters.ray_tune.searchers import param_space

    (domain,) = param_space(SpaceTranslation(SearchSpace({"only": Constant(value=1)})), {}).values()
    assert domain.sample() == 0


@pytest.mark.parametrize("name", list(SAMPLER_OPTIONS))
def test_every_option_reaches_its_sampler(name: str) -> None:
    from tuneoff_adapters.ray_tune.searchers import optuna_search

    given: dict[str, Any] = {
        option: rule.type == "flag" if rule.least is None else int(rule.least) for option, rule in SAMPLER_OPTIONS[name].items()
    }
    optuna_search(name, given, seed=0)
