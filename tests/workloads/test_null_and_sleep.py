"""The workloads `null` and `sleep`."""

from __future__ import annotations

import time

import pytest

from tuneoff.base.space import Categorical, Constant, Float, SearchSpace
from tuneoff.errors import ExperimentError
from tuneoff.workload import TrialSeeds
from tuneoff_workloads.null import Null, null_loss
from tuneoff_workloads.sleep import Sleep

SEEDS = TrialSeeds(split=1, trial=2)


def test_null_is_a_known_function_of_the_configuration() -> None:
    assert null_loss({"x": 0.0}) == 0
    assert null_loss({"x": 1.0}) == 0.5
    assert null_loss({"x": 1.0, "y": -3}) == (0.5 + 0.9) / 2
    assert 0 < null_loss({"x": "relu"}) < 1
    assert null_loss({"x": "relu"}) != null_loss({"x": "tanh"})
    assert 0 < null_loss({"x": [1, 2]}) < 1
    assert null_loss({}) == 0


def test_null_reports_it_in_every_epoch_and_in_the_test() -> None:
    workload = Null({})
    workload.load({"x": 1.0}, SEEDS)
    for epoch in (1, 2):
        assert workload.train_epoch(epoch) == {}
        assert workload.validate() == {"validation_loss": 0.5, "validation_accuracy": 0.5}
    assert workload.test().values == {"test_loss": 0.5, "test_accuracy": 0.5}
    assert set(workload.validate()) == set(Null.metrics)


def test_null_takes_any_space_and_no_options() -> None:
    Null({}).check_space(SearchSpace({"a": Float(low=0, high=1), "b": Categorical(choices=("x", "y"))}))
    with pytest.raises(ExperimentError, match="has no options"):
        Null({"epochs": 3})


def test_sleep_takes_the_stated_time() -> None:
    workload = Sleep({"epoch_seconds": 0.05, "validate_seconds": 0.02})
    workload.load({"x": 1.0}, SEEDS)
    start = time.monotonic()
    workload.train_epoch(1)
    middle = time.monotonic()
    assert workload.validate()["validation_loss"] == 0.5
    assert middle - start >= 0.05
    assert time.monotonic() - middle >= 0.02


def test_a_hyperparameter_can_set_the_time_of_an_epoch() -> None:
    workload = Sleep({"epoch_seconds": 60.0})
    workload.load({"epoch_seconds": 0.0}, SEEDS)
    start = time.monotonic()
    workload.train_epoch(1)
    assert time.monotonic() - start < 30
    with pytest.raises(ExperimentError, match="epoch_seconds"):
        workload.check_space(SearchSpace({"epoch_seconds": Float(low=-1.0, high=1.0)}))
    with pytest.raises(ExperimentError, match="epoch_seconds"):
        workload.check_space(SearchSpace({"epoch_seconds": Constant(value="long")}))
    workload.check_space(SearchSpace({"epoch_seconds": Float(low=0.0, high=1.0), "x": Constant(value="any")}))


@pytest.mark.parametrize("options", [{"seconds": 1}, {"epoch_seconds": -1}, {"load_seconds": "1"}], ids=str)
def test_sleep_refuses_wrong_options(options: dict[str, object]) -> None:
    with pytest.raises(ExperimentError):
        Sleep(options)
