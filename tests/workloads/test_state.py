"""A checkpoint restores model, optimizer and random generators exactly."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from tuneoff.errors import CheckpointError
from tuneoff_workloads.mnist_mlp import MnistMlp

Load = Callable[..., MnistMlp]


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_training_on_from_a_checkpoint_equals_uninterrupted_training(load: Load, optimizer: str) -> None:
    configuration = {"dropout": 0.3, "optimizer": optimizer, "weight_decay": 0.01, "learning_rate": 0.01}
    whole, first = load(**configuration), load(**configuration)
    for epoch in (1, 2):
        whole.train_epoch(epoch)
        first.train_epoch(epoch)
    state = first.state_dict()
    resumed = load(**configuration)
    resumed.train_epoch(1)  # whatever it did before is overwritten
    resumed.load_state_dict(*state)
    assert resumed.state_dict() == state
    for epoch in (3, 4):
        assert resumed.train_epoch(epoch) == whole.train_epoch(epoch)
        assert resumed.validate() == whole.validate()
    assert resumed.state_dict() == whole.state_dict()


def test_a_kept_state_does_not_change_while_training_goes_on(load: Load) -> None:
    workload = load()
    workload.train_epoch(1)
    tensors, _ = workload.state_dict()
    copy = {name: bytes(tensor.data) for name, tensor in tensors.items()}
    workload.train_epoch(2)
    assert {name: tensor.data for name, tensor in tensors.items()} == copy


def test_a_checkpoint_of_another_shape_is_refused(load: Load) -> None:
    state = load(hidden_width=32).state_dict()
    with pytest.raises(CheckpointError, match=r"'parameters'.*another configuration"):
        load().load_state_dict(*state)


def test_a_checkpoint_without_a_part_is_refused(load: Load) -> None:
    workload = load()
    tensors, texts = workload.state_dict()
    without = {name: tensor for name, tensor in tensors.items() if name != "random.order"}
    with pytest.raises(CheckpointError, match=r"no tensor 'random\.order'"):
        workload.load_state_dict(without, texts)
    without = {name: tensor for name, tensor in tensors.items() if name != "optimizer.steps"}
    with pytest.raises(CheckpointError, match=r"no tensor 'optimizer\.steps'"):
        workload.load_state_dict(without, texts)
    with pytest.raises(CheckpointError, match="device"):
        workload.load_state_dict(tensors, {**texts, "device": "cuda"})


def test_sizes_and_types_of_the_tensors_are_true(load: Load) -> None:
    width = {"F32": 4, "U8": 1}
    for tensor in load().state_dict()[0].values():
        size = width[tensor.dtype]
        for length in tensor.shape:
            size *= length
        assert len(tensor.data) == size
        assert dataclasses.is_dataclass(tensor)
