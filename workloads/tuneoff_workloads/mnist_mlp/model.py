"""The multi-layer perceptron on flat vectors, with a backward pass of its own.

The gradient is written out, and each batch length has its tensors made once: with autograd an epoch takes 1.3 (784-256-10, batch
256) to 3 times (64-32-10, batch 16) as long, with new tensors in each step 1.1 to 1.4 times. A test holds the gradient equal to
autograd's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tuneoff_workloads.mnist_mlp.specification import Activation

LEAKY_SLOPE = 0.01
Lap = Callable[[], object]
_ALIGNMENT = 16  # floats: each parameter starts on a cache line
_aten, _nn = torch.ops.aten, torch._C._nn


class ActivationFunction(NamedTuple):
    """An activation h = f(z): `forward(z, h)` writes h, `backward(gradient, z, h)` multiplies the gradient by f'(z)."""

    forward: Callable[[Tensor, Tensor], object]
    backward: Callable[[Tensor, Tensor, Tensor], object]


ACTIVATIONS: dict[Activation, ActivationFunction] = {
    "relu": ActivationFunction(
        lambda z, h: torch.clamp_min(z, 0, out=h),
        lambda gradient, _z, h: gradient.mul_(h.sign_()),  # h is never negative and not needed any further
    ),
    "leaky_relu": ActivationFunction(
        lambda z, h: _nn.leaky_relu(z, LEAKY_SLOPE, out=h),
        lambda gradient, z, _h: _aten.leaky_relu_backward.grad_input(gradient, z, LEAKY_SLOPE, False, grad_input=gradient),
    ),
    "tanh": ActivationFunction(
        lambda z, h: torch.tanh(z, out=h),
        lambda gradient, _z, h: _aten.tanh_backward.grad_input(gradient, h, grad_input=gradient),
    ),
    "sigmoid": ActivationFunction(
        lambda z, h: torch.sigmoid(z, out=h),
        lambda gradient, _z, h: _aten.sigmoid_backward.grad_input(gradient, h, grad_input=gradient),
    ),
    "gelu": ActivationFunction(
        lambda z, h: _nn.gelu(z, out=h),  # type: ignore[call-arg]
        lambda gradient, z, _h: _aten.gelu_backward.grad_input(gradient, z, grad_input=gradient),
    ),
}


class Layer(NamedTuple):
    """Parameters and gradients of one layer, as views of the flat vectors."""

    weight: Tensor
    bias: Tensor  # (units,)
    weight_gradient: Tensor
    bias_gradient: Tensor


def layer_views(flat: Tensor, sizes: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
    """Return weight and bias (units,) of each layer as views of a flat vector.

    Hidden layers store weights as (inputs, units), which the matrix products prefer at small batches, the last one as (classes,
    inputs), because its logits are (classes, batch).
    """
    views, start, last = [], 0, len(sizes) - 2
    for index, (inputs, units) in enumerate(itertools.pairwise(sizes)):
        shape = (inputs, units) if index < last else (units, inputs)
        bias = start + _aligned(inputs * units)
        views.append((flat[start : start + inputs * units].view(shape), flat[bias : bias + units]))
        start = bias + _aligned(units)
    return views


class Mlp:
    """Fully connected layers with an activation after each but the last, and inverted dropout after each hidden one."""

    def __init__(self, sizes: Sequence[int], activation: Activation, dropout: float, seed: int, device: torch.device) -> None:
        """Build the layers `sizes[0]` - ... - `sizes[-1]`, uniform in +-1/sqrt(inputs) like those of `torch.nn.Linear`."""
        length = sum(_aligned(inputs * units) + _aligned(units) for inputs, units in itertools.pairwise(sizes))  # with padding
        flat, generator = torch.zeros(length), torch.Generator().manual_seed(seed)
        for (weight, bias), inputs in zip(layer_views(flat, sizes), sizes, strict=False):
            bound = 1 / math.sqrt(inputs)
            weight.uniform_(-bound, bound, generator=generator)
            bias.uniform_(-bound, bound, generator=generator)
        self.parameters = flat.to(device)  # float32
        self.gradients = torch.zeros_like(self.parameters)
        views = zip(layer_views(self.parameters, sizes), layer_views(self.gradients, sizes), strict=True)
        self._layers = [Layer(*parameters, *gradients) for parameters, gradients in views]
        self._activation = ACTIVATIONS[activation]
        self._dropout = dropout
        self._steps: dict[int, tuple[list[_Hidden], _Head]] = {}  # by batch length: the usual one, and the last one of an epoch

    def logits(self, images: Tensor) -> Tensor:
        """Return the logits (classes, batch) of normalised images (batch, pixels), without dropout."""
        hidden = images
        *layers, last = self._layers
        for layer in layers:
            z = torch.addmm(layer.bias, hidden, layer.weight)
            hidden = torch.empty_like(z)
            self._activation.forward(z, hidden)
        return torch.addmm(last.bias.unsqueeze(1), last.weight, hidden.t())

    def train_on(
        self,
        images: Tensor,
        targets: Tensor,
        log_probabilities: Tensor,
        dropout_generator: torch.Generator,
        lap: Lap | None = None,
    ) -> None:
        """Set `gradients` to the gradient of the mean cross-entropy of a batch; the earlier gradient is overwritten.

        Args:
            images: normalised, float32 (batch, pixels).
            targets: int64 (batch,), where each image's true class lies in the flattened logits: class * batch + image.
            log_probabilities: (classes, batch), receives the logarithm of each class's probability.
            dropout_generator: draws the dropout masks; untouched without dropout.
            lap: called after the forward pass, the loss and the backward pass.
        """
        batch = len(targets)
        if batch not in self._steps:
            *hidden_layers, last = self._layers
            steps = [_Hidden(layer, batch, self._activation, self._dropout) for layer in hidden_layers]
            self._steps[batch] = steps, _Head(last, batch)
        layers, head = self._steps[batch]
        hidden = images
        for layer in layers:
            hidden = layer.forward(hidden, dropout_generator)
        gradient = head.train_on(hidden, targets, log_probabilities, lap)
        weight_above = head.weight
        for layer in reversed(layers):
            gradient = layer.backward(gradient, weight_above)
            weight_above = layer.transposed
        if lap is not None:
            lap()


class _Hidden:
    """A hidden layer in training, for batches of one length."""

    def __init__(self, layer: Layer, batch: int, activation: ActivationFunction, dropout: float) -> None:
        self._weight, self._bias, self._weight_gradient, self._bias_gradient = layer
        self.transposed = layer.weight.t()
        self._activation, self._dropout = activation, dropout
        self._z, self._h, self._mask, self._dropped, self._delta = layer.bias.new_empty(5, batch, len(layer.bias)).unbind()
        self._delta_transposed = self._delta.t()
        self._ones = layer.bias.new_ones(batch)
        self._inputs = layer.weight  # replaced by the inputs (batch, inputs) of each step

    def forward(self, inputs: Tensor, dropout_generator: torch.Generator) -> Tensor:
        """Return the outputs (batch, units) of `inputs` (batch, inputs)."""
        self._inputs = inputs
        torch.addmm(self._bias, inputs, self._weight, out=self._z)
        self._activation.forward(self._z, self._h)
        if not self._dropout:
            return self._h
        self._mask.bernoulli_(1 - self._dropout, generator=dropout_generator).mul_(1 / (1 - self._dropout))
        torch.mul(self._h, self._mask, out=self._dropped)
        return self._dropped

    def backward(self, above: Tensor, weight_above: Tensor) -> Tensor:
        """Set the parameters' gradients and return that of z (batch, units), from that of z above (batch, units above)."""
        delta = self._delta
        torch.mm(above, weight_above, out=delta)
        if self._dropout:
            delta.mul_(self._mask)
        self._activation.backward(delta, self._z, self._h)
        torch.mm(self._inputs.t(), delta, out=self._weight_gradient)
        torch.mv(self._delta_transposed, self._ones, out=self._bias_gradient)
        return delta


class _Head:
    """The last layer and the loss in training, for batches of one length.

    The logits are (classes, batch): a softmax over the first dimension is vectorised over the batch.
    """

    def __init__(self, layer: Layer, batch: int) -> None:
        self.weight, bias, self._weight_gradient, self._bias_gradient = layer
        self._bias = bias.unsqueeze(1)
        self._logits, self._delta = bias.new_empty(2, len(bias), batch).unbind()
        self._delta_flat, self._delta_transposed = self._delta.view(-1), self._delta.t()
        self._ones = bias.new_ones(batch)

    def train_on(self, inputs: Tensor, targets: Tensor, log_probabilities: Tensor, lap: Lap | None) -> Tensor:
        """Set the parameters' gradients and return that of the logits as (batch, classes); arguments as of `Mlp.train_on`."""
        torch.addmm(self._bias, self.weight, inputs.t(), out=self._logits)
        if lap is not None:
            lap()
        torch.log_softmax(self._logits, 0, out=log_probabilities)
        torch.exp(log_probabilities, out=self._delta)  # the gradient is (probability - one-hot label) / batch
        self._delta_flat.index_add_(0, targets, self._ones, alpha=-1)
        self._delta.mul_(1 / len(targets))
        if lap is not None:
            lap()
        torch.mm(self._delta, inputs, out=self._weight_gradient)
        torch.mv(self._delta, self._ones, out=self._bias_gradient)
        return self._delta_transposed


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
