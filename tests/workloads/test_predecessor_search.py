"""Each defect of earlier benchmarks' search: the test that would catch it and, where it helps, the defect planted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mlp_by_hand import parts
from tuneoff.base.space import Categorical, Constant, Float, SearchSpace
from tuneoff.errors import ExperimentError
from tuneoff_workloads.mnist_mlp import MnistMlp, specification

Load = Callable[..., MnistMlp]


# 10. The searched hyperparameters were parsed and constants trained; another score was optimized than reported.


@pytest.mark.parametrize(
    "changed",
    [
        {"learning_rate": 1e-2},
        {"weight_decay": 0.1},
        {"batch_size": 32},
        {"hidden_layers": 1},
        {"hidden_width": 64},
        {"hidden_widths": [128, 64]},
        {"activation": "tanh"},
        {"dropout": 0.3},
        {"optimizer": "sgd"},
        {"optimizer": "sgd", "momentum": 0.5},
    ],
    ids=str,
)
def test_each_hyperparameter_has_an_effect(load: Load, changed: dict[str, Any]) -> None:
    before = load(optimizer="sgd") if "momentum" in changed else load()
    assert load(**changed).train_epoch(1) != before.train_epoch(1)


def test_control_momentum_has_no_effect_on_adam_and_such_a_search_is_refused(load: Load) -> None:
    assert load(momentum=0.5).train_epoch(1) == load().train_epoch(1)
    with pytest.raises(ExperimentError, match="momentum"):
        specification.check_space(SearchSpace({"momentum": Float(low=0.0, high=0.9)}))
    specification.check_space(
        SearchSpace({"momentum": Float(low=0.0, high=0.9), "optimizer": Categorical(choices=("adam", "sgd"))})
    )


# 11. The sampler's distribution was not the space's. The adapters' tests hold that; here: kinds that do not fit are refused.


def test_a_float_dimension_for_a_whole_number_is_refused() -> None:
    for dimension in (Float(low=16.0, high=256.0), Float(low=16, high=256)):
        with pytest.raises(ExperimentError, match="batch_size"):
            specification.check_space(SearchSpace({"batch_size": dimension}))


# 12. Pruning was a no-op: a trial reported once, at its end.


def test_every_epoch_has_its_own_validation_figures(load: Load) -> None:
    workload = load()
    losses = []
    for epoch in (1, 2, 3):
        workload.train_epoch(epoch)
        losses.append(workload.validate()["validation_loss"])
    assert losses == sorted(losses, reverse=True)
    assert len(set(losses)) == 3


# 13. Hidden layers were never searched: the key had a typing error.


def test_a_misspelt_hyperparameter_is_refused(load: Load) -> None:
    with pytest.raises(ExperimentError, match="hidden_lyer_config"):
        specification.check_space(SearchSpace({"hidden_lyer_config": Constant(value=[15])}))
    with pytest.raises(ExperimentError, match="hidden_lyer_config"):
        load(hidden_lyer_config=[15])


def test_hidden_layers_and_widths_shape_the_model(load: Load) -> None:
    shapes = [{"hidden_layers": layers, "hidden_width": 32} for layers in (1, 2, 3)] + [{"hidden_widths": [32, 64, 32]}]
    sizes = [parts(load(**shape))._model.parameters.numel() for shape in shapes]
    assert len(set(sizes)) == 4
