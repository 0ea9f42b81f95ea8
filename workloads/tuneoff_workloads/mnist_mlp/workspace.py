"""Every tensor that a training step writes, and every transposed view that it reads, made once per batch length.

At batch 64 a step has about 35 operations of some microseconds each: making buffers and views anew would cost a tenth of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from tuneoff_workloads.mnist_mlp.layers import Layer


class ForwardStep(NamedTuple):
    """What one hidden layer needs going forward; shapes (units,), (inputs, units) and four times (batch, units)."""

    bias: Tensor
    weight: Tensor
    z: Tensor
    h: Tensor  # the activation; z itself where the function works in place
    mask: Tensor  # dropout mask; h itself without dropout
    dropped: Tensor  # what goes to the next layer; h itself without dropout


class BackwardStep(NamedTuple):
    """What one hidden layer needs going backward."""

    weight_above: Tensor  # (units above, units)
    delta: Tensor  # (batch, units), gradient of h, then of z
    delta_transposed: Tensor
    z: Tensor
    h: Tensor
    mask: Tensor
    inputs_transposed: Tensor | None  # (inputs, batch); None: the images
    weight_gradient: Tensor
    bias_gradient: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What the last layer and the loss need; `logits` and `delta` are (classes, batch)."""

    bias: Tensor  # (classes, 1)
    weight: Tensor
    inputs: Tensor
    inputs_transposed: Tensor
    logits: Tensor
    delta: Tensor
    delta_flat: Tensor
    delta_transposed: Tensor
    weight_gradient: Tensor
    bias_gradient: Tensor
    ones: Tensor  # (batch,)
    one_over_batch: float


@dataclass(frozen=True, slots=True)
class Workspace:
    """The steps of one training step, in order."""

    forward: list[ForwardStep]
    head: Head
    backward: list[BackwardStep]

    @classmethod
    def of(cls, layers: Sequence[Layer], batch: int, *, in_place: bool, has_dropout: bool) -> Workspace:
        """Make the tensors for `layers` and batches of `batch` images."""
        *hidden_layers, last = layers
        forward = [_forward_step(layer, batch, in_place, has_dropout) for layer in hidden_layers]
        backward: list[BackwardStep] = []
        weight_above = last.weight
        for index in range(len(hidden_layers) - 1, -1, -1):
            step, layer = forward[index], hidden_layers[index]
            delta = torch.empty_like(step.z)
            backward.append(
                BackwardStep(
                    weight_above=weight_above,
                    delta=delta,
                    delta_transposed=delta.t(),
                    z=step.z,
                    h=step.h,
                    mask=step.mask,
                    inputs_transposed=forward[index - 1].dropped.t() if index else None,
                    weight_gradient=layer.weight_gradient,
                    bias_gradient=layer.bias_gradient,
                )
            )
            weight_above = layer.transposed
        return cls(forward, _head(last, forward[-1].dropped), backward)


def _forward_step(layer: Layer, batch: int, in_place: bool, has_dropout: bool) -> ForwardStep:
    z = layer.bias.new_empty(batch, len(layer.bias))
    h = z if in_place else torch.empty_like(z)
    mask, dropped = (torch.empty_like(z), torch.empty_like(z)) if has_dropout else (h, h)
    return ForwardStep(bias=layer.bias, weight=layer.weight, z=z, h=h, mask=mask, dropped=dropped)


def _head(layer: Layer, inputs: Tensor) -> Head:
    batch, classes = len(inputs), len(layer.bias)
    delta = layer.bias.new_empty(classes, batch)
    return Head(
        bias=layer.bias.unsqueeze(1),
        weight=layer.weight,
        inputs=inputs,
        inputs_transposed=inputs.t(),
        logits=torch.empty_like(delta),
        delta=delta,
        delta_flat=delta.view(-1),
        delta_transposed=delta.t(),
        weight_gradient=layer.weight_gradient,
        bias_gradient=layer.bias_gradient,
        ones=layer.bias.new_ones(batch),
        one_over_batch=1 / batch,
    )
