"""The trip of a configuration to a framework's native dimensions and back."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.refusals import refusal
from builders.spaces import spaces, units
from builders.specs import make_spec
from tuneoff.base.identity import canonical_json
from tuneoff.base.space import Categorical, Constant, Float, IntegerLog, SearchSpace, stepped
from tuneoff.experiment.translation import (
    LIST_INDEX,
    ListTranslation,
    NativeFloat,
    NativeIndex,
    NativeLogInteger,
    SpaceTranslation,
    translation_of,
)

SPACE = SearchSpace(
    {
        "rate": Float(low=1e-5, high=1e-1, log=True),
        "width": IntegerLog(low=2, high=64),
        "dropout": stepped(0.0, 0.5, 0.1, integer=False),
        "size": Categorical(choices=("s", "m", "l"), ordered=True),
        "epochs": Constant(value=3),
    }
)


@given(spaces(), st.data())
def test_a_configuration_survives_the_trip(space: SearchSpace, data: st.DataObject) -> None:
    translation = SpaceTranslation(space)
    configuration = space.from_units(data.draw(units(space)))
    native = translation.encode(configuration)
    assert set(native) == set(translation.native) == set(space.searched)
    for values in (native, json.loads(json.dumps(native))):  # script-driven frameworks pass values as text
        assert canonical_json(translation.decode(values)) == canonical_json(configuration)


@given(st.integers(1, 500), st.integers(1, 500), st.floats(0.0, 1.0))
def test_every_native_log_integer_maps_into_the_dimension(low: int, width: int, unit: float) -> None:
    kind = NativeLogInteger(low=low, high=low + width)
    least, most = kind.bounds
    assert low <= kind.decode(least * (most / least) ** unit) <= low + width


def test_a_bound_missed_by_rounding_is_the_bound() -> None:
    kind = NativeFloat(low=1e-5, high=1e-1, log=True)
    assert kind.decode(math.nextafter(1e-1, 1.0)) == 1e-1
    assert kind.decode(math.exp(math.log(1e-5))) == pytest.approx(1e-5)
    assert [NativeLogInteger(low=1, high=8).decode(end) for end in (0.5, 8.5)] == [1, 8]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("rate", value) for value in (0.2, 0.0, math.nan, "0.01", None, ...)),
        *(("width", value) for value in (65.0, 1.0)),
        *(("dropout", value) for value in (6, -1, 0.5)),
        ("size", "l"),
    ],
)
def test_a_value_outside_or_a_missing_one_is_an_error_never_a_guess(name: str, value: object) -> None:
    native: dict[str, object] = {"rate": 1e-3, "width": 2.2, "dropout": 3, "size": 2, name: value}
    assert refusal(SpaceTranslation(SPACE).decode, {name: value for name, value in native.items() if value is not ...})


def test_a_configuration_outside_is_not_encoded() -> None:
    assert refusal(SpaceTranslation(SearchSpace({"a": stepped(1, 3, 1, integer=True)})).encode, {"a": 4})


def test_a_list_is_one_index_and_maps_back() -> None:
    listed = [{"a": 1, "b": 0.5}, {"a": 2, "b": 0.5}]
    translation = ListTranslation(listed)
    assert translation.native == {LIST_INDEX: NativeIndex(size=2, ordered=True)}
    for index, configuration in enumerate(listed):
        assert translation.encode(configuration) == {LIST_INDEX: index}
        assert translation.decode({LIST_INDEX: index}) == configuration
    assert refusal(translation.encode, {"a": 1.0, "b": 0.5})
    for native in ({LIST_INDEX: 2}, {}):
        assert refusal(translation.decode, native)


@pytest.mark.parametrize(("sampler", "kind"), [("random", SpaceTranslation), ("grid", ListTranslation)])
def test_a_run_translates_its_list_where_it_has_one_and_else_its_space(sampler: str, kind: type) -> None:
    space = SearchSpace({"depth": stepped(1, 4, 1, integer=True)})
    translation = translation_of(make_spec("toy", sampler=sampler, search_space=space, trials=4, epochs=1))
    assert isinstance(translation, kind)
    assert translation.decode({"depth": 0, LIST_INDEX: 0})["depth"] in (1, 2, 3, 4)
