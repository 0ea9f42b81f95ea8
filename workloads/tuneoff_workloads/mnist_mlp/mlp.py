"""The multi-layer perceptron, with a backward pass of its own.

The gradient is written out because autograd's bookkeeping costs a third of a step at 784-128-128-10 and batch 64; a test holds it
equal to autograd's. The logits are (classes, batch): a softmax over the first dimension is vectorised over the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tuneoff_workloads.mnist_mlp.activations import FUNCTIONS
from tuneoff_workloads.mnist_mlp.layers import Layout
from tuneoff_workloads.mnist_mlp.specification import Activation
from tuneoff_workloads.mnist_mlp.workspace import Workspace


class Mlp:
    """Fully connected layers with an activation after each but the last, and inverted dropout after each hidden one."""

    def __init__(self, sizes: Sequence[int], activation: Activation, dropout: float, seed: int, device: torch.device) -> None:
        """Build the layers `sizes[0]` - ... - `sizes[-1]`."""
        layout = Layout.of(sizes)
        self.parameters = layout.initial_parameters(torch.Generator().manual_seed(seed)).to(device)  # float32, flat
        self.gradients = torch.zeros_like(self.parameters)
        self._layers = layout.layers(self.parameters, self.gradients)
        self._activation = FUNCTIONS[activation]
        self._dropout = dropout
        self._workspaces: dict[int, Workspace] = {}  # by batch length: the usual one, and the last one of an epoch

    def logits(self, images: Tensor) -> Tensor:
        """Return the logits (classes, batch) of normalised images (batch, pixels), without dropout."""
        hidden = images
        *layers, last = self._layers
        for layer in layers:
            z = torch.addmm(layer.bias, hidden, layer.weight)
            hidden = z if self._activation.is_in_place else torch.empty_like(z)
            self._activation.forward(z, hidden)
        return torch.addmm(last.bias.unsqueeze(1), last.weight, hidden.t())

    def train_on(self, images: Tensor, targets: Tensor, log_probabilities: Tensor, dropout_generator: torch.Generator) -> None:
        """Set `gradients` to the gradient of the mean cross-entropy of a batch; the earlier gradient is overwritten.

        Args:
            images: normalised, float32 (batch, pixels).
            targets: int64 (batch,), where each image's true class lies in the flattened logits: class * batch + image.
            log_probabilities: (classes, batch), receives the logarithm of each class's probability.
            dropout_generator: draws the dropout masks; untouched without dropout.
        """
        workspace = self._workspaces.get(len(targets)) or self._new_workspace(len(targets))
        dropout, activation = self._dropout, self._activation
        hidden = images
        for bias, weight, z, h, mask, dropped in workspace.forward:
            torch.addmm(bias, hidden, weight, out=z)
            activation.forward(z, h)
            hidden = h
            if dropout:
                mask.bernoulli_(1 - dropout, generator=dropout_generator).mul_(1 / (1 - dropout))
                hidden = torch.mul(h, mask, out=dropped)
        head = workspace.head
        torch.addmm(head.bias, head.weight, head.inputs_transposed, out=head.logits)
        torch.log_softmax(head.logits, 0, out=log_probabilities)
        # The gradient of the logits is (probability - one-hot label) / batch, (classes, batch).
        torch.exp(log_probabilities, out=head.delta)
        head.delta_flat.index_add_(0, targets, head.ones, alpha=-1)
        head.delta.mul_(head.one_over_batch)
        torch.mm(head.delta, head.inputs, out=head.weight_gradient)
        torch.mv(head.delta, head.ones, out=head.bias_gradient)
        above = head.delta_transposed
        for weight_above, delta, delta_t, z, h, mask, inputs_t, weight_gradient, bias_gradient in workspace.backward:
            torch.mm(above, weight_above, out=delta)  # (batch, units)
            if dropout:
                delta.mul_(mask)
            activation.backward(delta, z, h)
            torch.mm(images.t() if inputs_t is None else inputs_t, delta, out=weight_gradient)
            torch.mv(delta_t, head.ones, out=bias_gradient)
            above = delta

    def _new_workspace(self, batch: int) -> Workspace:
        workspace = Workspace.of(self._layers, batch, in_place=self._activation.is_in_place, has_dropout=self._dropout > 0)
        self._workspaces[batch] = workspace
        return workspace
