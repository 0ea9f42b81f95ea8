"""Each defect of earlier benchmarks' model and training: the test that would catch it and, where it helps, the defect planted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from mlp_by_hand import network, parts, train_on
from tuneoff.errors import ExperimentError
from tuneoff_workloads.mnist_mlp import MnistMlp, specification
from tuneoff_workloads.mnist_mlp.model import ACTIVATIONS, ActivationFunction, Mlp

Load = Callable[..., MnistMlp]


def is_affine(model: Mlp) -> bool:
    first, second = torch.randn(2, 5, 64, generator=torch.Generator().manual_seed(1)).unbind()
    zero = torch.zeros(5, 64)
    return torch.allclose(
        model.logits(first + second) + model.logits(zero), model.logits(first) + model.logits(second), atol=1e-4
    )


# 1. No non-linearity: the activation was built and never called.


@pytest.mark.parametrize("activation", specification.ACTIVATIONS)
def test_every_activation_makes_the_model_non_linear(activation: specification.Activation) -> None:
    assert not is_affine(network(activation))


def test_control_a_model_without_activation_is_found_affine(monkeypatch: pytest.MonkeyPatch) -> None:
    identity = ActivationFunction(lambda z, h: h.copy_(z), lambda gradient, _z, _h: gradient)
    monkeypatch.setitem(ACTIVATIONS, "relu", identity)
    assert is_affine(network("relu"))


# 3. Gradients were never zeroed, so that they accumulated.


def gradient_of(model: Mlp, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    train_on(model, images, labels)
    return model.gradients.clone()


def test_a_batch_s_gradient_does_not_depend_on_earlier_batches() -> None:
    generator = torch.Generator().manual_seed(5)
    images, labels = torch.randn(2, 8, 64, generator=generator), torch.randint(10, (2, 8), generator=generator)
    used, fresh = network(), network()
    first = gradient_of(used, images[0], labels[0])
    second = gradient_of(used, images[1], labels[1])
    expected = gradient_of(fresh, images[1], labels[1])
    assert torch.equal(second, expected)
    assert not torch.allclose(first + second, expected)  # the planted defect would be seen


# 8. Validation built a graph, shuffled, and left the model in evaluation mode.


def test_validation_changes_nothing_and_repeats_exactly(load: Load) -> None:
    with_validation, without = load(dropout=0.5), load(dropout=0.5)
    for epoch in (1, 2):
        with_validation.train_epoch(epoch)
        without.train_epoch(epoch)
        assert with_validation.validate() == with_validation.validate()
    assert with_validation.state_dict() == without.state_dict()


def test_dropout_works_after_a_validation_and_not_in_it(load: Load) -> None:
    dropping, plain = load(dropout=0.5), load(dropout=0.0)
    assert dropping.validate() == plain.validate()  # equal initial parameters, and no dropout in validation
    assert dropping.train_epoch(1) != plain.train_epoch(1)


def test_no_tensor_of_the_model_keeps_a_graph(load: Load) -> None:
    workload = load()
    workload.train_epoch(1)
    workload.validate()
    model = parts(workload)._model
    assert not model.parameters.requires_grad
    assert model.parameters.grad_fn is None


# 9. The device was never set, so trials ran on the CPU.


def test_a_missing_cuda_device_is_refused_and_never_replaced_silently(load: Load) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    with pytest.raises(ExperimentError, match="needs a CUDA device"):
        load(options={"device": "cuda"})
    assert load(options={"device": "auto"}).device() == "cpu"


def test_training_on_cuda_stays_on_cuda(load: Load) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    workload = load(options={"device": "cuda"}, dropout=0.1)
    workload.train_epoch(1)
    assert parts(workload)._model.parameters.is_cuda
    assert parts(workload)._data.pool.images.is_cuda
    assert workload.device().startswith("cuda:")
    assert workload.validate()["validation_accuracy"] > 0.3
