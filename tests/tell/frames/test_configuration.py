from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas
import pytest

import tuneoff
from builders.odd_folders import HOSTILE, export_to
from tuneoff.errors import ResultsError
from tuneoff.tell.frames.load import with_configuration


def trials(*configurations: Any) -> pandas.DataFrame:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in configurations]
    return pandas.DataFrame({"configuration": texts, "value": 0.5}, index=[f"i{place}" for place in range(len(texts))])


def test_each_parameter_is_a_column_of_its_type() -> None:
    made = with_configuration(
        trials(
            {"int": 1, "number": 1, "truth": True, "text": "a", "mixed": 1, "nested": [1], "null": None},
            {"int": 2**62 + 1, "number": 0.5, "truth": False, "text": "b", "mixed": "1", "nested": {"a": 1}, "null": None},
            {},
        ),
        "c.",
    )
    types = {name: str(dtype) for name, dtype in made.dtypes.items() if str(name).startswith("c.")}
    assert types == {
        "c.int": "Int64",
        "c.number": "float64",
        "c.truth": "boolean",
        "c.text": "str",
        "c.mixed": "object",
        "c.nested": "object",
        "c.null": "object",
    }
    assert made["c.int"].dropna().tolist() == [1, 2**62 + 1]
    assert made["c.mixed"].tolist() == [1, "1", None]
    assert made.iloc[2, 2:].isna().all()
    assert list(made.index) == ["i0", "i1", "i2"]


def test_an_integer_beyond_64_bits_stays_whole() -> None:
    assert with_configuration(trials({"x": 2**70}), "")["x"].tolist() == [2**70]


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(ResultsError, match="the trials have a column 'value' already; give another prefix"):
        with_configuration(trials({"value": 1}), "")
    assert with_configuration(trials({"value": 1}), "x")["xvalue"].tolist() == [1]


def test_a_configuration_that_is_none_is_one_line() -> None:
    for text in ("[1]", "{", '{"a":1},{"b":2}'):
        with pytest.raises(ResultsError, match="a configuration is damaged") as caught:
            with_configuration(trials({"a": 1}, text), "")
        assert "\n" not in str(caught.value)


def test_no_trials_have_no_parameters() -> None:
    assert list(with_configuration(trials(), "c.")) == ["configuration", "value"]


def test_the_trials_of_a_folder_have_their_parameters(odd: Path) -> None:
    for _ in range(2):
        made = tuneoff.load(odd).trials_with_configuration()
        for text, x in zip(made["configuration"], made["configuration.x"], strict=True):
            assert json.loads(text)["x"] == x
        assert made[f"configuration.{HOSTILE}"].dropna().tolist() == [HOSTILE]
        export_to(odd)
