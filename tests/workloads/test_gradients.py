"""The gradient written by hand equals autograd's."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch

from mlp_by_hand import train_on
from tuneoff_workloads.mnist_mlp.model import LEAKY_SLOPE, Mlp, layer_views
from tuneoff_workloads.mnist_mlp.specification import ACTIVATIONS, Activation

CPU = torch.device("cpu")
AUTOGRAD: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": torch.relu,
    "leaky_relu": lambda z: torch.nn.functional.leaky_relu(z, LEAKY_SLOPE),
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "gelu": torch.nn.functional.gelu,
}


def reference_gradient(
    model: Mlp,
    sizes: tuple[int, ...],
    activation: Activation,
    images: torch.Tensor,
    labels: torch.Tensor,
    masks: list[torch.Tensor],
) -> tuple[torch.Tensor, float]:
    """Return gradient and loss by autograd; `masks` are the dropout masks, empty without dropout."""
    flat = model.parameters.clone().requires_grad_()
    *layers, (last, last_bias) = layer_views(flat, sizes)
    hidden = images
    for index, (weight, bias) in enumerate(layers):
        hidden = AUTOGRAD[activation](hidden @ weight + bias)
        if masks:
            hidden = hidden * masks[index]
    loss = torch.nn.functional.cross_entropy(hidden @ last.t() + last_bias, labels)
    (gradient,) = torch.autograd.grad(loss, [flat])
    return gradient, float(loss.detach())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("activation", "widths", "dropout"), [*itertools.product(ACTIVATIONS, [(16,), (13, 7), (8, 24, 9)], [0.0, 0.4])]
)
def test_gradient_and_loss_equal_autograd_s(activation: Activation, widths: tuple[int, ...], dropout: float) -> None:
    sizes = (20, *widths, 10)
    model = Mlp(sizes, activation, dropout, seed=1, device=CPU)
    generator = torch.Generator().manual_seed(2)
    for batch in (12, 5, 12):
        images = torch.randn(batch, 20, generator=generator)
        labels = torch.randint(10, (batch,), generator=generator)
        draws, same_draws = torch.Generator().manual_seed(3), torch.Generator().manual_seed(3)
        log_probabilities = train_on(model, images, labels, draws)
        masks = [torch.empty(batch, width).bernoulli_(1 - dropout, generator=same_draws) / (1 - dropout) for width in widths]
        expected, loss = reference_gradient(model, sizes, activation, images, labels, masks if dropout else [])
        torch.testing.assert_close(model.gradients, expected, rtol=1e-4, atol=1e-6)
        assert -float(log_probabilities.gather(0, labels.unsqueeze(0)).mean()) == pytest.approx(loss, rel=1e-5)


def test_control_a_missing_factor_would_be_seen() -> None:
    model = Mlp((20, 16, 10), "tanh", 0.0, seed=1, device=CPU)
    images, labels = torch.randn(12, 20, generator=torch.Generator().manual_seed(2)), torch.arange(12) % 10
    train_on(model, images, labels)
    expected, _ = reference_gradient(model, (20, 16, 10), "relu", images, labels, [])
    with pytest.raises(AssertionError):
        torch.testing.assert_close(model.gradients, expected, rtol=1e-4, atol=1e-6)


def test_initial_parameters_are_uniform_within_one_over_root_of_the_inputs() -> None:
    model = Mlp((400, 300, 10), "relu", 0.0, seed=1, device=CPU)
    (weight, bias), (last, _) = layer_views(model.parameters, (400, 300, 10))
    assert float(weight.abs().max()) <= 1 / 20
    assert float(weight.std()) == pytest.approx(1 / 20 / 3**0.5, rel=0.02)
    assert float(bias.abs().max()) <= 1 / 20
    assert float(last.abs().max()) <= 300**-0.5


def test_padding_between_parameters_stays_zero() -> None:
    sizes = (20, 13, 10)
    model = Mlp(sizes, "relu", 0.0, seed=1, device=CPU)
    train_on(model, torch.randn(4, 20), torch.arange(4))
    used = sum(weight.numel() + bias.numel() for weight, bias in layer_views(model.gradients, sizes))
    assert used < model.gradients.numel()
    for vector in (model.parameters, model.gradients):
        rest = vector.clone()
        for weight, bias in layer_views(rest, sizes):
            weight.zero_()
            bias.zero_()
        assert not rest.any()
