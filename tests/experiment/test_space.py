"""Dimensions and spaces: bounds, points, types, canonical values."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.refusals import refusal
from builders.spaces import spaces, units
from tuneoff.base.identity import canonical_json, configuration_digest
from tuneoff.base.space import Categorical, Constant, Float, IntegerLog, SearchSpace, Stepped, stepped
from tuneoff.experiment.translation import SpaceTranslation


@given(spaces(), st.data())
def test_every_draw_lies_in_the_space_and_has_a_json_form(space: SearchSpace, data: st.DataObject) -> None:
    configuration = space.from_units(data.draw(units(space)))
    space.check(configuration)
    assert space.complete(configuration) == configuration
    assert canonical_json(space.complete(configuration)) == canonical_json(configuration)


@given(spaces())
def test_unit_ends_give_the_first_and_the_last_value(space: SearchSpace) -> None:
    last = math.nextafter(1.0, 0.0)
    for dimension in space.searched.values():
        if isinstance(dimension, Float | IntegerLog):
            assert dimension.from_unit(0.0) == pytest.approx(dimension.low)
            assert dimension.from_unit(last) == pytest.approx(dimension.high)
        elif isinstance(dimension, Stepped | Categorical):
            assert dimension.from_unit(0.0) == dimension.value_at(0)
            assert dimension.from_unit(last) == dimension.value_at(dimension.size - 1)


def test_float_points_have_no_grid_noise() -> None:
    dimension = stepped(-0.3, 0.9, 0.1, integer=False)
    assert [dimension.value_at(index) for index in range(dimension.size)] == [number / 10 for number in range(-3, 10)]


def test_a_number_has_the_type_of_its_dimension() -> None:
    dimensions = (
        Float(low=0, high=2),
        stepped(0, 2, 1, integer=False),
        stepped(0, 2, 1, integer=True),
        IntegerLog(low=1, high=2),
        Categorical(choices=(1, 1.5)),
        Constant(value=1),
    )
    space = SearchSpace(dict(zip("abcdef", dimensions, strict=True)))
    assert [type(value) for value in space.complete(dict.fromkeys("abcdef", 1)).values()] == [float, float, int, int, int, int]


@pytest.mark.parametrize("value", [2.0, True, "2", 7, math.nan, math.inf, None])
def test_an_integer_dimension_holds_integers_only(value: object) -> None:
    dimension = stepped(1, 4, 1, integer=True)
    assert dimension.contains(2)
    assert not dimension.contains(value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Float(low=2.0, high=1.0),
        lambda: Float(low=0.0, high=1.0, log=True),
        lambda: Float(low=0.0, high=math.inf),
        lambda: Float(low=-1.7e308, high=1.7e308),
        lambda: IntegerLog(low=0, high=8),
        lambda: Stepped(low=0.5, step=1, size=3, integer=True),
        lambda: Stepped(low=0, step=1, size=2**53, integer=True),
        lambda: stepped(1, 4, 0, integer=True),
        lambda: stepped(-1.7e308, 1.7e308, 1e307, integer=False),
        lambda: Categorical(choices=()),
        lambda: Categorical(choices=([1], [1.0], [1])),
        lambda: Categorical(choices=(math.nan,)),
        lambda: Constant(value=math.inf),
        lambda: SearchSpace({}),
    ],
)
def test_impossible_dimensions_are_refused_at_birth(make: Callable[[], object]) -> None:
    assert refusal(make)


def test_choices_are_equal_by_type_and_value() -> None:
    choices = (1, 1.0, True, "1", [1], [1.0], {"a": 1}, {"a": True}, None, "null", False, 0)
    space = SearchSpace({"x": Categorical(choices=choices)})
    assert [repr(item["x"]) for item in space.grid()] == [repr(choice) for choice in choices]
    assert len({configuration_digest(item) for item in space.grid()}) == len(choices)
    assert [SpaceTranslation(space).encode(item)["x"] for item in space.grid()] == list(range(len(choices)))
    assert refusal(lambda: Categorical(choices=("a", 1.0, 1, 1.0))).endswith("number 2 and number 4 are both 1.0; remove one")


def test_integer_log_probabilities_are_those_of_rounded_log_uniforms() -> None:
    dimension = IntegerLog(low=1, high=8)
    assert dimension.probability(1) == pytest.approx(math.log(3) / math.log(17))
    assert sum(dimension.probability(value) for value in range(1, 9)) == pytest.approx(1.0)


def test_complete_refuses_unknown_missing_and_outside() -> None:
    space = SearchSpace({"rate": Float(low=0.0, high=2.0)})
    for configuration in ({}, {"rate": 1.0, "other": 1}, {"rate": 3.0}, {"rate": "1"}, {"rate": math.nan}):
        assert refusal(space.complete, configuration)
