"""The multilayer perceptron looked at from inside, and its predictions computed by numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tuneoff_workloads.mnist_mlp import MnistMlp
from tuneoff_workloads.mnist_mlp.model import Mlp, layer_views

CPU = torch.device("cpu")


def parts(workload: MnistMlp) -> Any:
    """The torch part of a loaded workload, whose private members these tests look into."""
    return workload._training


def network(activation: Any = "relu", dropout: float = 0.0) -> Mlp:
    return Mlp((64, 16, 16, 10), activation, dropout, seed=3, device=CPU)


def train_on(model: Mlp, images: torch.Tensor, labels: torch.Tensor, draws: torch.Generator | None = None) -> torch.Tensor:
    """Set the model's gradients on a batch, and return the logarithm of each class's probability (classes, batch)."""
    batch = len(labels)
    log_probabilities = torch.empty(10, batch)
    model.train_on(images, labels * batch + torch.arange(batch), log_probabilities, draws or torch.Generator())
    return log_probabilities


def predictions_by_hand(workload: MnistMlp, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (predicted classes, probabilities) computed by numpy from the checkpoint's parameters."""
    tensors, _ = workload.state_dict()
    flat = torch.frombuffer(bytearray(tensors["parameters"].data), dtype=torch.float32)
    data = parts(workload)._data
    hidden = (images.astype(np.float64) - data.mean) / data.deviation
    *layers, (last, bias) = layer_views(flat, (64, 128, 128, 10))
    for weight, hidden_bias in layers:
        hidden = np.maximum(hidden @ weight.numpy() + hidden_bias.numpy(), 0)
    logits = hidden @ last.numpy().T + bias.numpy()
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return logits.argmax(axis=1), exponentials / exponentials.sum(axis=1, keepdims=True)
