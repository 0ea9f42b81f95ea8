"""What Syne Tune's random search draws from the translated space, against core's distributions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from scipy import stats

from builders.syne_tune_specs import DRAWS, SPACE, spec_of
from tuneoff.experiment.space import IntegerLog, points
from tuneoff.experiment.translation import SpaceTranslation, translation_of
from tuneoff_adapters.syne_tune.schedulers import make_scheduler
from tuneoff_adapters.syne_tune.space import domains

LEAST_P = 1e-4  # with a fixed seed a test either always passes or always fails; this is how surprising it may be


@pytest.fixture(scope="module")
def drawn() -> list[dict[str, Any]]:
    spec = spec_of(SPACE)
    translation = translation_of(spec)
    scheduler = make_scheduler(spec, translation)
    configurations = [translation.decode(scheduler.suggest().config) for _ in range(DRAWS)]
    for configuration in configurations:
        SPACE.check(configuration)
    return configurations


def uniformity(values: list[Any], choices: list[Any], probability: Callable[[Any], float] | None = None) -> float:
    """Return the p value of a chi-squared test."""
    counts = Counter(str(value) for value in values)
    expected = [DRAWS * (probability(choice) if probability else 1 / len(choices)) for choice in choices]
    return float(stats.chisquare([counts[str(choice)] for choice in choices], expected).pvalue)


@pytest.mark.parametrize("name", ["integer", "float_step", "unordered", "ordered"])
def test_every_point_is_equally_likely_the_end_points_too(drawn: list[dict[str, Any]], name: str) -> None:
    choices = list(points(SPACE.dimensions[name]))
    assert uniformity([configuration[name] for configuration in drawn], choices) > LEAST_P


def test_log_integers_have_the_probabilities_that_core_defines(drawn: list[dict[str, Any]]) -> None:
    dimension = SPACE.dimensions["log_integer"]
    assert isinstance(dimension, IntegerLog)
    values = [configuration["log_integer"] for configuration in drawn]
    assert uniformity(values, list(range(1, 9)), dimension.probability) > LEAST_P


def test_syne_tunes_own_log_integer_would_be_caught() -> None:
    from syne_tune.config_space import lograndint

    numpy.random.seed(1)
    dimension = SPACE.dimensions["log_integer"]
    assert isinstance(dimension, IntegerLog)
    values = [lograndint(1, 8).sample() for _ in range(DRAWS)]
    assert uniformity(values, list(range(1, 9)), dimension.probability) < 1e-12


def test_syne_tunes_own_quantized_integer_would_be_caught() -> None:
    from syne_tune.config_space import qrandint

    numpy.random.seed(1)
    assert uniformity([qrandint(16, 64, 16).sample() for _ in range(DRAWS)], [16, 32, 48, 64]) < 1e-12


def test_floats_are_uniform_and_log_uniform_over_the_whole_range(drawn: list[dict[str, Any]]) -> None:
    linear = numpy.array([configuration["linear"] for configuration in drawn])
    exponents = numpy.log10([configuration["log"] for configuration in drawn])
    assert stats.kstest(linear, "uniform", args=(-1.0, 4.0)).pvalue > LEAST_P
    assert stats.kstest(exponents, "uniform", args=(-5.0, 4.0)).pvalue > LEAST_P
    assert stats.kstest(exponents, "uniform", args=(-5.0, 3.8)).pvalue < LEAST_P / 100  # the test can fail


def test_native_types_are_syne_tunes_exact_ones() -> None:
    text = {name: str(domain) for name, domain in domains(SpaceTranslation(SPACE).native).items()}
    assert text["integer"] == "randint(0, 3)"
    assert text["unordered"] == "choice([0, 1, 2, 3])"
    assert text["log_integer"] == "loguniform(0.5, 8.5)"
    assert "constant" not in text


def test_a_configuration_survives_the_way_there_and_back(drawn: list[dict[str, Any]]) -> None:
    translation = SpaceTranslation(SPACE)
    for configuration in drawn[:200]:
        assert translation.decode(translation.encode(configuration)) == configuration
