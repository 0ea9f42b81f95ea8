"""Activation functions with their derivatives. Both write into given tensors, so that a step allocates nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from tuneoff_workloads.mnist_mlp.specification import Activation

LEAKY_SLOPE = 0.01
_aten = torch.ops.aten
_gelu = _aten.gelu.out
_leaky_relu_backward = _aten.leaky_relu_backward.grad_input
_tanh_backward = _aten.tanh_backward.grad_input
_sigmoid_backward = _aten.sigmoid_backward.grad_input
_gelu_backward = _aten.gelu_backward.grad_input


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationFunction:
    """An activation h = f(z).

    `forward(z, h)` writes h; where `is_in_place`, h is z itself. `backward(gradient, z, h)` multiplies the gradient by
    f'(z); where `is_in_place`, only h is left to tell it. It may overwrite z and h.
    """

    is_in_place: bool
    forward: Callable[[Tensor, Tensor], object]
    backward: Callable[[Tensor, Tensor, Tensor], object]


def _relu_backward(gradient: Tensor, _z: Tensor, h: Tensor) -> object:
    return gradient.mul_(h.sign_())  # the derivative is 1 where h > 0, else 0; h is never negative


FUNCTIONS: dict[Activation, ActivationFunction] = {
    "relu": ActivationFunction(is_in_place=True, forward=lambda z, _h: torch.relu_(z), backward=_relu_backward),
    "leaky_relu": ActivationFunction(
        is_in_place=True,
        forward=lambda z, _h: torch.nn.functional.leaky_relu_(z, LEAKY_SLOPE),
        backward=lambda gradient, _z, h: _leaky_relu_backward(gradient, h, LEAKY_SLOPE, True, grad_input=gradient),
    ),
    "tanh": ActivationFunction(
        is_in_place=True,
        forward=lambda z, _h: torch.tanh_(z),
        backward=lambda gradient, _z, h: _tanh_backward(gradient, h, grad_input=gradient),
    ),
    "sigmoid": ActivationFunction(
        is_in_place=True,
        forward=lambda z, _h: torch.sigmoid_(z),
        backward=lambda gradient, _z, h: _sigmoid_backward(gradient, h, grad_input=gradient),
    ),
    "gelu": ActivationFunction(
        is_in_place=False,
        forward=lambda z, h: _gelu(z, out=h),
        backward=lambda gradient, z, _h: _gelu_backward(gradient, z, grad_input=gradient),
    ),
}
