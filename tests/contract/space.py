"""What every adapter's framework must draw from the translated space: values inside it, by core's distributions."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from scipy import stats

from tuneoff.base.identity import canonical_json
from tuneoff.base.space import Categorical, Float, IntegerLog, SearchSpace, Stepped, points

LEAST_P = 1e-4  # with a fixed seed a test either always passes or always fails; this is how surprising it may be
Drawn = tuple[SearchSpace, list[dict[str, Any]]]


def uniformity(values: Sequence[Any], choices: Iterable[Any], probability: Callable[[Any], float] | None = None) -> float:
    """Return the p value of a chi-squared test; a value that is none of the choices gives 0."""
    choices = list(choices)
    counts = Counter(canonical_json(value) for value in values)
    if set(counts) - {canonical_json(choice) for choice in choices}:
        return 0.0
    expected = [len(values) * (probability(choice) if probability else 1 / len(choices)) for choice in choices]
    return float(stats.chisquare([counts[canonical_json(choice)] for choice in choices], expected).pvalue)


def continuity(values: Sequence[float], dimension: Float, *, log: bool) -> float:
    """Return the p value of a Kolmogorov-Smirnov test of (log-)uniform values over the whole range."""
    if log:
        return float(stats.kstest(values, stats.loguniform(dimension.low, dimension.high).cdf).pvalue)
    return float(stats.kstest(values, stats.uniform(dimension.low, dimension.high - dimension.low).cdf).pvalue)


class SpaceContract:
    """Inherit it, with a fixture `drawn` of module scope: the space, and thousands of configurations by one seeded sampler."""

    @pytest.fixture(scope="module")
    @classmethod
    def drawn(cls) -> Drawn:
        """Return the space and what was drawn from it."""
        raise NotImplementedError

    def test_every_draw_lies_in_the_space(self, drawn: Drawn) -> None:
        space, configurations = drawn
        for configuration in configurations:
            space.check(configuration)

    def test_every_value_is_as_likely_as_core_defines(self, drawn: Drawn) -> None:
        space, configurations = drawn
        for name, dimension in space.searched.items():
            values = [configuration[name] for configuration in configurations]
            if isinstance(dimension, Stepped | Categorical):
                found = uniformity(values, points(dimension))
            elif isinstance(dimension, IntegerLog):
                found = uniformity(values, points(dimension), dimension.probability)
            else:
                assert isinstance(dimension, Float)
                found = continuity(values, dimension, log=dimension.log)
            assert found > LEAST_P, name

    def test_a_skewed_draw_would_be_caught(self, drawn: Drawn) -> None:
        """Planted: end points with half the weight, the usual log integer, a wrong scale, a value that is no choice."""
        space, configurations = drawn
        generator = random.Random(0)
        chances = [generator.random() for _ in configurations]
        assert uniformity([round(chance * 3) for chance in chances], range(4)) < 1e-12
        assert uniformity([int(9.0**chance) for chance in chances], range(1, 9), IntegerLog(low=1, high=8).probability) < 1e-12
        assert uniformity([1, 2] * 1000 + [9], [1, 2]) == 0.0
        for name, dimension in space.searched.items():
            if isinstance(dimension, Float):
                values = [configuration[name] for configuration in configurations]
                assert continuity(values, Float(low=1e-5, high=dimension.high), log=not dimension.log) < 1e-12
