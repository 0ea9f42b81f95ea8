"""The flat optimizers do what their formulas say."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tuneoff_workloads.mnist_mlp import optimizer
from tuneoff_workloads.mnist_mlp.optimizer import OPTIMIZERS, adam_update
from tuneoff_workloads.mnist_mlp.specification import Hyperparameters

STEPS = 50


def gradients() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(64, generator=generator) for _ in range(STEPS)]


def run(name: Any, **hyperparameters: float) -> torch.Tensor:
    parameters, gradient = torch.linspace(-1, 1, 64), torch.zeros(64)
    values = Hyperparameters(learning_rate=0.01, optimizer=name, **hyperparameters)  # type: ignore[arg-type]
    chosen = OPTIMIZERS[name](values, parameters, gradient)
    for value in gradients():
        gradient.copy_(value)
        chosen.step()
    return parameters


def adam_by_hand(decay: float) -> torch.Tensor:
    p = torch.linspace(-1, 1, 64, dtype=torch.float64)
    mean, square = torch.zeros_like(p), torch.zeros_like(p)
    for step, gradient in enumerate(gradients(), 1):
        p = p * (1 - 0.01 * decay)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        p = p - 0.01 * (mean / (1 - 0.9**step)) / ((square / (1 - 0.999**step)).sqrt() + 1e-8)
    return p.float()


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adam_follows_its_formula(decay: float) -> None:
    torch.testing.assert_close(run("adam", weight_decay=decay), adam_by_hand(decay), rtol=1e-4, atol=1e-6)


def test_control_weight_decay_in_the_gradient_would_be_seen() -> None:
    decoupled = adam_by_hand(0.1)
    without = adam_by_hand(0.0)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(decoupled, without, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("momentum", "decay"), [(0.0, 0.0), (0.9, 0.0), (0.9, 0.1)])
def test_sgd_follows_its_formula(momentum: float, decay: float) -> None:
    p, velocity = torch.linspace(-1, 1, 64, dtype=torch.float64), torch.zeros(64, dtype=torch.float64)
    for gradient in gradients():
        velocity = momentum * velocity + gradient
        p = p * (1 - 0.01 * decay) - 0.01 * velocity
    torch.testing.assert_close(run("sgd", weight_decay=decay, momentum=momentum), p.float(), rtol=1e-4, atol=1e-5)


def test_torch_s_kernel_is_used_where_it_does_what_the_public_function_does() -> None:
    assert adam_update() is optimizer._kernel


@pytest.mark.parametrize("kernel", [None, lambda p: None, lambda *_, **__: None], ids=["missing", "other signature", "no effect"])
def test_without_a_trusted_kernel_the_public_function_does_the_same(kernel: object, monkeypatch: pytest.MonkeyPatch) -> None:
    by_kernel = run("adam", weight_decay=0.1)
    monkeypatch.setattr(torch, "_fused_adamw_", kernel)
    adam_update.cache_clear()
    try:
        assert adam_update() is not optimizer._kernel
        torch.testing.assert_close(run("adam", weight_decay=0.1), by_kernel, rtol=1e-4, atol=1e-6)
    finally:
        adam_update.cache_clear()
