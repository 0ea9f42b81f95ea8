"""The flat optimizers do what their formulas say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tuneoff_workloads.mnist_mlp import optimizer
from tuneoff_workloads.mnist_mlp.optimizer import Adam, FusedAdam, Optimizer, Sgd, fused_kernel, make_optimizer
from tuneoff_workloads.mnist_mlp.specification import Hyperparameters

STEPS = 50
needs_fused = pytest.mark.skipif(fused_kernel() is None, reason="this torch has no fused AdamW kernel")


def gradients() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(64, generator=generator) for _ in range(STEPS)]


def run(make: Callable[[torch.Tensor, torch.Tensor], Optimizer]) -> torch.Tensor:
    parameters, gradient = torch.linspace(-1, 1, 64), torch.zeros(64)
    chosen = make(parameters, gradient)
    for value in gradients():
        gradient.copy_(value)
        chosen.step()
    assert chosen.steps == STEPS
    return parameters


def adam_by_hand(rate: float, decay: float) -> torch.Tensor:
    p = torch.linspace(-1, 1, 64, dtype=torch.float64)
    mean, square = torch.zeros_like(p), torch.zeros_like(p)
    for step, gradient in enumerate(gradients(), 1):
        p = p * (1 - rate * decay)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        p = p - rate * (mean / (1 - 0.9**step)) / ((square / (1 - 0.999**step)).sqrt() + 1e-8)
    return p.float()


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adam_follows_its_formula(decay: float) -> None:
    torch.testing.assert_close(run(lambda p, g: Adam(p, g, 0.01, decay)), adam_by_hand(0.01, decay), rtol=1e-4, atol=1e-6)


@needs_fused
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_fused_adam_follows_the_same_formula(decay: float) -> None:
    torch.testing.assert_close(run(lambda p, g: FusedAdam(p, g, 0.01, decay)), adam_by_hand(0.01, decay), rtol=1e-4, atol=1e-6)


def test_control_weight_decay_in_the_gradient_would_be_seen() -> None:
    decoupled = adam_by_hand(0.01, 0.1)
    without = adam_by_hand(0.01, 0.0)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(decoupled, without, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("momentum", "decay"), [(0.0, 0.0), (0.9, 0.0), (0.9, 0.1)])
def test_sgd_follows_its_formula(momentum: float, decay: float) -> None:
    p, velocity = torch.linspace(-1, 1, 64, dtype=torch.float64), torch.zeros(64, dtype=torch.float64)
    for gradient in gradients():
        velocity = momentum * velocity + gradient
        p = p * (1 - 0.01 * decay) - 0.01 * velocity
    torch.testing.assert_close(run(lambda w, g: Sgd(w, g, 0.01, decay, momentum)), p.float(), rtol=1e-4, atol=1e-5)


def test_without_a_known_fused_kernel_the_plain_form_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    hyperparameters = Hyperparameters()
    vectors = torch.zeros(16), torch.zeros(16)
    monkeypatch.setattr(optimizer, "fused_kernel", lambda: None)
    assert type(make_optimizer(hyperparameters, *vectors)) is Adam


@pytest.mark.parametrize("kernel", [None, lambda p: None, lambda *_, **__: None], ids=["missing", "other signature", "no effect"])
def test_an_unknown_fused_kernel_is_not_trusted(kernel: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "_fused_adamw_", kernel)
    assert fused_kernel.__wrapped__() is None
