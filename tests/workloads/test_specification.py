"""Options, configurations and search spaces of mnist_mlp."""

from __future__ import annotations

from typing import Any

import pytest

from tuneoff.base.space import Categorical, Constant, Float, IntegerLog, SearchSpace, stepped
from tuneoff.errors import ExperimentError
from tuneoff_workloads.mnist_mlp import MnistMlp
from tuneoff_workloads.mnist_mlp.specification import (
    Hyperparameters,
    check_space,
    default_space,
    parse_configuration,
    parse_options,
)


def test_missing_hyperparameters_take_the_documented_defaults() -> None:
    assert parse_configuration({}) == Hyperparameters()
    assert parse_configuration({"hidden_layers": 3}).hidden_widths == (128, 128, 128)
    assert parse_configuration({"hidden_width": 7}).hidden_widths == (7, 7)
    assert parse_configuration({"hidden_widths": [5, 6, 7]}).hidden_widths == (5, 6, 7)


def test_the_default_space_is_accepted_and_its_configurations_parse() -> None:
    space = default_space()
    MnistMlp({}).check_space(space)
    for unit in (0.0, 0.3, 0.999999):
        parse_configuration(space.from_units(dict.fromkeys(space.dimensions, unit)))


@pytest.mark.parametrize(
    ("name", "dimension"),
    [
        ("learning_rate", Float(low=0.0, high=1.0)),
        ("learning_rate", Constant(value="0.1")),
        ("learning_rate", Constant(value=True)),
        ("weight_decay", Float(low=-1.0, high=1.0)),
        ("batch_size", stepped(0, 64, 16, integer=True)),
        ("batch_size", Categorical(choices=(64, 2**20))),
        ("hidden_layers", stepped(0, 3, 1, integer=True)),
        ("hidden_width", IntegerLog(low=8, high=10_000)),
        ("hidden_widths", Categorical(choices=([64], []))),
        ("hidden_widths", Constant(value=128)),
        ("hidden_widths", Constant(value=[64, 0])),
        ("activation", Categorical(choices=("relu", "swish"))),
        ("activation", Constant(value=["relu"])),
        ("dropout", stepped(0.0, 1.0, 0.5, integer=False)),
        ("optimizer", Categorical(choices=("adam", "rmsprop"))),
        ("unknown", Constant(value=1)),
    ],
    ids=str,
)
def test_a_space_with_an_impossible_value_is_refused_in_one_line(name: str, dimension: Any) -> None:
    with pytest.raises(ExperimentError, match=name) as error:
        check_space(SearchSpace({name: dimension}))
    assert "\n" not in str(error.value)


def test_both_ways_of_giving_widths_at_once_are_refused() -> None:
    with pytest.raises(ExperimentError, match="got both"):
        check_space(SearchSpace({"hidden_widths": Constant(value=[64]), "hidden_layers": Constant(value=2)}))


@pytest.mark.parametrize(
    "options",
    [
        {"data": "digits"},
        {"dataset": "cifar"},
        {"dataset": ["digits"]},
        {"device": "gpu"},
        {"validation_size": 0},
        {"validation_size": 1490},
        {"validation_size": 0.2},
        {"train_limit": 0},
        {"train_limit": True},
    ],
    ids=str,
)
def test_a_wrong_option_is_refused_in_one_line(options: dict[str, Any]) -> None:
    with pytest.raises(ExperimentError) as error:
        MnistMlp(options)
    assert "\n" not in str(error.value)


def test_options_have_defaults_per_data_set() -> None:
    assert parse_options({}).train_size == 1200
    assert parse_options({"dataset": "mnist"}).train_size == 55_000
    assert parse_options({"dataset": "fashion_mnist", "train_limit": 100, "validation_size": 10_000}).train_size == 100
