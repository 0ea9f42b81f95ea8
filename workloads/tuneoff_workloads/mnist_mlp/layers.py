"""Layers as views into flat vectors: one vector of all parameters, one of all gradients."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_ALIGNMENT = 16  # floats: each parameter starts on a cache line


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One fully connected layer: parameters and gradients as views.

    Hidden layers store weights as (inputs, units), which the matrix products prefer at small batches, the last one as
    (classes, inputs), because its logits are (classes, batch).
    """

    weight: Tensor
    bias: Tensor
    weight_gradient: Tensor
    bias_gradient: Tensor
    transposed: Tensor  # view of `weight`


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each layer's weight and bias lie in a flat vector of `length` floats."""

    sizes: tuple[int, ...]
    starts: tuple[tuple[int, int], ...]  # (weight, bias) per layer
    length: int

    @classmethod
    def of(cls, sizes: Sequence[int]) -> Layout:
        """Return the layout of layers `sizes[0]` - ... - `sizes[-1]`."""
        starts, end = [], 0
        for inputs, units in itertools.pairwise(sizes):
            bias = end + _aligned(inputs * units)
            starts.append((end, bias))
            end = bias + _aligned(units)
        return cls(tuple(sizes), tuple(starts), end)

    def views(self, flat: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return (weight, bias) of each layer as views of `flat`."""
        last = len(self.starts) - 1
        result = []
        for index, (start, bias) in enumerate(self.starts):
            inputs, units = self.sizes[index], self.sizes[index + 1]
            shape = (inputs, units) if index < last else (units, inputs)
            result.append((flat[start : start + inputs * units].view(shape), flat[bias : bias + units]))
        return result

    def initial_parameters(self, generator: torch.Generator) -> Tensor:
        """Return new parameters, uniform in +-1/sqrt(inputs) like those of `torch.nn.Linear`; the padding is 0."""
        flat = torch.zeros(self.length)
        for (weight, bias), inputs in zip(self.views(flat), self.sizes, strict=False):
            bound = 1 / math.sqrt(inputs)
            weight.uniform_(-bound, bound, generator=generator)
            bias.uniform_(-bound, bound, generator=generator)
        return flat

    def layers(self, parameters: Tensor, gradients: Tensor) -> list[Layer]:
        """Return the layers as views of the two vectors."""
        return [
            Layer(
                weight=weight,
                bias=bias,
                weight_gradient=weight_gradient,
                bias_gradient=bias_gradient,
                transposed=weight.t(),
            )
            for (weight, bias), (weight_gradient, bias_gradient) in zip(
                self.views(parameters), self.views(gradients), strict=True
            )
        ]


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
