"""What Optuna's random sampler draws from the translated space, against core's distributions."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from scipy import stats

from builders.optuna_specs import plan_of, run_spec
from builders.spaces import spaces, units
from tuneoff.base.identity import canonical_json
from tuneoff.experiment.space import Categorical, Constant, Float, IntegerLog, SearchSpace, points, stepped
from tuneoff.experiment.translation import SpaceTranslation
from tuneoff_adapters.optuna.distributions import distributions
from tuneoff_adapters.optuna.samplers import make_sampler

SPACE = SearchSpace(
    {
        "linear": Float(low=-1.0, high=3.0),
        "log": Float(low=1e-5, high=1e-1, log=True),
        "log_integer": IntegerLog(low=1, high=8),
        "integer": stepped(16, 64, 16, integer=True),
        "float_step": stepped(0.0, 0.9, 0.3, integer=False),
        "unordered": Categorical(choices=("a", "b", [64, 64])),
        "ordered": Categorical(choices=("s", "m", "l"), ordered=True),
        "constant": Constant(value=7),
    }
)
DRAWS = 10_000
LEAST_P = 1e-4  # with a fixed seed a test either always passes or always fails; this is how surprising it may be


@pytest.fixture(scope="module")
def drawn() -> list[dict[str, Any]]:
    """10 000 configurations by one sampler; over several studies, because an ask looks through all trials of its study."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    translation = SpaceTranslation(SPACE)
    sampler, native = make_sampler(plan_of(run_spec(space=SPACE)), worker=0), distributions(translation.native)
    configurations = []
    for _ in range(DRAWS // 500):
        study = optuna.create_study(sampler=sampler)
        configurations += [translation.decode(study.ask(native).params) for _ in range(500)]
    return configurations


def column(drawn: list[dict[str, Any]], name: str) -> list[Any]:
    return [configuration[name] for configuration in drawn]


def uniformity(values: Sequence[Any], choices: Sequence[Any], probability: Callable[[Any], float] | None = None) -> float:
    """Return the p value of a chi-squared test; a value that is none of the choices gives 0."""
    counts = Counter(canonical_json(value) for value in values)
    if set(counts) - {canonical_json(choice) for choice in choices}:
        return 0.0
    expected = [len(values) * (probability(choice) if probability else 1 / len(choices)) for choice in choices]
    return float(stats.chisquare([counts[canonical_json(choice)] for choice in choices], expected).pvalue)


def test_each_native_kind_has_its_distribution() -> None:
    assert distributions(SpaceTranslation(SPACE).native) == {
        "linear": FloatDistribution(-1.0, 3.0),
        "log": FloatDistribution(1e-5, 1e-1, log=True),
        "log_integer": FloatDistribution(0.5, 8.5, log=True),
        "integer": IntDistribution(0, 3),
        "float_step": IntDistribution(0, 3),
        "unordered": CategoricalDistribution((0, 1, 2)),
        "ordered": IntDistribution(0, 2),
    }


@pytest.mark.slow
def test_every_draw_lies_in_the_space(drawn: list[dict[str, Any]]) -> None:
    for configuration in drawn:
        SPACE.check(configuration)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["integer", "float_step", "unordered", "ordered"])
def test_every_point_is_equally_likely_the_end_points_too(drawn: list[dict[str, Any]], name: str) -> None:
    assert uniformity(column(drawn, name), points(SPACE.dimensions[name])) > LEAST_P


@pytest.mark.slow
def test_log_integers_have_the_probabilities_that_core_defines(drawn: list[dict[str, Any]]) -> None:
    dimension = SPACE.dimensions["log_integer"]
    assert isinstance(dimension, IntegerLog)
    assert uniformity(column(drawn, "log_integer"), range(1, 9), dimension.probability) > LEAST_P


@pytest.mark.slow
def test_floats_are_uniform_and_log_uniform_over_the_whole_range(drawn: list[dict[str, Any]]) -> None:
    linear = column(drawn, "linear")
    assert stats.kstest(linear, stats.uniform(-1.0, 4.0).cdf).pvalue > LEAST_P
    assert stats.kstest(column(drawn, "log"), stats.loguniform(1e-5, 1e-1).cdf).pvalue > LEAST_P
    assert min(linear) < -0.99
    assert max(linear) > 2.99


@pytest.mark.slow
def test_a_skewed_draw_would_be_caught(drawn: list[dict[str, Any]]) -> None:
    generator = random.Random(0)
    rounded = [round(generator.random() * 3) for _ in range(DRAWS)]  # the usual mistake: end points with half the weight
    assert uniformity(rounded, range(4)) < 1e-12
    floored = [int((9.0 / 1.0) ** generator.random()) for _ in range(DRAWS)]  # the usual log integer
    assert uniformity(floored, range(1, 9), IntegerLog(low=1, high=8).probability) < 1e-12
    assert stats.kstest(column(drawn, "log"), stats.uniform(1e-5, 1e-1).cdf).pvalue < 1e-12
    assert uniformity([*column(drawn, "ordered"), "xl"], points(SPACE.dimensions["ordered"])) == 0.0


@settings(max_examples=50, deadline=None)
@given(spaces(), st.data())
def test_an_enqueued_configuration_survives_the_way_through_optuna(space: SearchSpace, data: st.DataObject) -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    translation = SpaceTranslation(space)
    configuration = space.from_units(data.draw(units(space)))
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.enqueue_trial(dict(translation.encode(configuration)))
    trial = study.ask(distributions(translation.native))
    assert canonical_json(translation.decode(trial.params)) == canonical_json(configuration)
