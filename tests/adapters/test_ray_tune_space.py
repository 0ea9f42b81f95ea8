"""The search space as Ray has it. Starts no Ray instance."""

from __future__ import annotations

from typing import Any

import pytest

from builders.spaces import SPACE as EVERY_KIND
from tuneoff.base.space import Constant, SearchSpace, stepped
from tuneoff.experiment.translation import SpaceTranslation
from tuneoff.trust.space_test.judge import Sample, judge
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


@pytest.mark.slow
def test_rays_optuna_search_draws_the_space_by_core_s_distributions() -> None:
    """By its own random search: `tests/trust/space_test/test_adapters.py`."""
    from optuna.samplers import RandomSampler
    from ray.tune.search.optuna import OptunaSearch

    from tuneoff_adapters.ray_tune.searchers import param_space

    searcher = OptunaSearch(sampler=RandomSampler(seed=7))
    translation = SpaceTranslation(SPACE)
    searcher.set_search_properties("objective", "min", param_space(translation, KEYS))
    values = [searcher.suggest(str(number)) for number in range(DRAWS)]
    drawn = [translation.decode({name: given[key] for key, name in KEYS.items()}) for given in values]
    assert judge(SPACE, Sample(by_seed={0: drawn})).verdict == "accepted"


def test_unordered_choices_have_no_order_for_a_model_and_constants_still_something_to_draw() -> None:
    from ray.tune.search.sample import Categorical, Integer

    from tuneoff_adapters.ray_tune.searchers import param_space

    space = param_space(SpaceTranslation(SPACE), KEYS)
    kinds = {name: type(space[key]) for key, name in KEYS.items()}
    assert (kinds["unordered"], kinds["ordered"], kinds["integer"]) == (Categorical, Integer, Integer)
    (domain,) = param_space(SpaceTranslation(SearchSpace({"only": Constant(value=1)})), {}).values()
    assert domain.sample() == 0


@pytest.mark.parametrize("sampler", list(SAMPLER_OPTIONS))
def test_the_same_seed_gives_the_same_configurations_and_every_option_reaches_its_sampler(sampler: str) -> None:
    from tuneoff_adapters.ray_tune.searchers import optuna_search, param_space

    options: dict[str, Any] = {
        name: rule.type == "flag" if rule.least is None else int(rule.least) for name, rule in SAMPLER_OPTIONS[sampler].items()
    }

    def first(seed: int) -> list[Any]:
        searcher = optuna_search(sampler, options, seed)
        searcher.set_search_properties("objective", "min", param_space(SpaceTranslation(SPACE), KEYS))
        return [searcher.suggest(str(number)) for number in range(3)]

    assert first(7) == first(7)
    assert first(7) != first(8)
