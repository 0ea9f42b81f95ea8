"""The workload `surrogate`: its optimum is the documented one."""

from __future__ import annotations

import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuneoff.base.space import Constant, Float, SearchSpace
from tuneoff.errors import CheckpointError, ExperimentError
from tuneoff.workload import TrialSeeds
from tuneoff_workloads.surrogate import OPTIMUM, START_LOSS, Surrogate, accuracy_of, surrogate_loss

SEEDS = TrialSeeds(split=1, trial=2)
units = st.fixed_dictionaries({name: st.floats(0, 1, exclude_max=True) for name in ("learning_rate", "hidden_width", "dropout")})


def curve(configuration: dict[str, Any], epochs: int, options: dict[str, Any] | None = None) -> list[float]:
    workload = Surrogate(options or {})
    workload.load(configuration, SEEDS)
    losses = []
    for epoch in range(1, epochs + 1):
        workload.train_epoch(epoch)
        losses.append(workload.validate()["validation_loss"])
    return losses


def test_the_optimum_has_the_optimal_loss() -> None:
    for epoch in (1, 3, 9):
        assert surrogate_loss(OPTIMUM, epoch) == surrogate_loss({}, epoch)
    assert surrogate_loss({}, 1000) == pytest.approx(0.05)
    worse = [{**OPTIMUM, "learning_rate": 1e-2}, {**OPTIMUM, "hidden_width": 64}, {**OPTIMUM, "dropout": 0.5}]
    assert all(surrogate_loss(configuration, 9) > surrogate_loss({}, 9) for configuration in worse)


@given(units)
def test_a_curve_falls_from_the_loss_of_guessing(chosen: dict[str, float]) -> None:
    losses = curve(Surrogate.default_space().from_units(chosen), 9)
    assert losses[0] < START_LOSS
    assert losses == sorted(losses, reverse=True)


def test_some_curves_cross_so_that_pruning_can_err() -> None:
    quick = {"learning_rate": 10**-2.5, "hidden_width": 128, "dropout": 0.8}
    slow = {"learning_rate": 10**-2.2, "hidden_width": 128, "dropout": 0.2}
    assert surrogate_loss(quick, 1) < surrogate_loss(slow, 1)
    assert surrogate_loss(quick, 60) > surrogate_loss(slow, 60)


def test_noise_is_drawn_from_the_trial_s_seed_and_has_the_stated_size() -> None:
    configuration = dict(OPTIMUM)
    assert curve(configuration, 5, {"noise": 0.1}) == curve(configuration, 5, {"noise": 0.1})
    clean, noisy = curve(configuration, 400), curve(configuration, 400, {"noise": 0.1})
    differences = [noise - exact for noise, exact in zip(noisy, clean, strict=True)]
    assert statistics.stdev(differences) == pytest.approx(0.1, rel=0.15)
    assert abs(statistics.mean(differences)) < 0.02


def test_a_restored_state_is_tested_at_its_own_epoch() -> None:
    workload = Surrogate({"noise": 0.5})
    workload.load(OPTIMUM, SEEDS)
    workload.train_epoch(3)
    state = workload.state_dict()
    fresh = Surrogate({"noise": 0.5})
    fresh.load(OPTIMUM, SEEDS)
    fresh.load_state_dict(*state)
    assert fresh.test().values == {"test_loss": surrogate_loss({}, 3), "test_accuracy": accuracy_of(surrogate_loss({}, 3))}
    assert fresh.state_dict() == state
    with pytest.raises(CheckpointError):
        fresh.load_state_dict({}, {})


@pytest.mark.parametrize(
    "dimensions",
    [
        {"x": Float(low=0, high=1)},
        {"learning_rate": Float(low=0, high=1)},
        {"dropout": Constant(value=-0.1)},
        {"hidden_width": Constant(value="128")},
    ],
    ids=str,
)
def test_impossible_spaces_are_refused(dimensions: dict[str, Any]) -> None:
    with pytest.raises(ExperimentError):
        Surrogate({}).check_space(SearchSpace(dimensions))


@pytest.mark.parametrize("options", [{"nois": 1}, {"noise": -1}, {"noise": None}], ids=str)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ExperimentError):
        Surrogate(options)


def test_accuracy_orders_as_loss_does() -> None:
    assert accuracy_of(0.0) == accuracy_of(-1.0) == 1.0
    assert accuracy_of(START_LOSS) == pytest.approx(0.1)
    assert accuracy_of(0.05) == pytest.approx(0.951, abs=1e-3)
