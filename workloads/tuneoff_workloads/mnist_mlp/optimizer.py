"""Adam and SGD with momentum on one flat parameter vector, both with decoupled weight decay.

No class of `torch.optim` is used: the first optimizer that it makes in a process imports torch._dynamo, about a second that each
fresh trial process would pay.

Source: Adam, arXiv 1412.6980; decoupled weight decay (AdamW, SGDW), arXiv 1711.05101.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.adamw import adamw

from tuneoff_workloads.mnist_mlp.specification import Hyperparameters

log = logging.getLogger(__name__)
_ADAM = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "amsgrad": False, "maximize": False}


class Sgd:
    """Stochastic gradient descent: v = momentum v + g; p = p (1 - lr wd) - lr v."""

    def __init__(self, hyperparameters: Hyperparameters, parameters: Tensor, gradients: Tensor) -> None:
        self._parameters, self._gradients, self._velocity = parameters, gradients, torch.zeros_like(parameters)
        self._rate, self._momentum = hyperparameters.learning_rate, hyperparameters.momentum
        self._kept = 1 - self._rate * hyperparameters.weight_decay

    def step(self) -> None:
        """Update the parameters from their gradients."""
        torch.add(self._gradients, self._velocity, alpha=self._momentum, out=self._velocity)
        if self._kept != 1:
            self._parameters.mul_(self._kept)
        self._parameters.add_(self._velocity, alpha=-self._rate)

    def state(self) -> Mapping[str, Tensor]:
        """Return what a checkpoint holds, float32 by name, to be saved and written to in place."""
        return {"velocity": self._velocity}


class Adam:
    """Adam with bias correction, in one pass over memory.

    p = p (1 - lr wd) - lr mean / (1 - b1^t) / (sqrt(square / (1 - b2^t)) + epsilon), with the usual running means of g and g^2.
    """

    def __init__(self, hyperparameters: Hyperparameters, parameters: Tensor, gradients: Tensor) -> None:
        self._mean, self._square = torch.zeros_like(parameters), torch.zeros_like(parameters)
        self._steps = parameters.new_zeros(())
        vectors = (parameters, gradients, self._mean, self._square)
        rate, decay = hyperparameters.learning_rate, hyperparameters.weight_decay
        self._update = _bound(adam_update(), vectors, self._steps, rate, decay)

    def step(self) -> None:
        """Update the parameters from their gradients."""
        self._update()

    def state(self) -> Mapping[str, Tensor]:
        """Return what a checkpoint holds, float32 by name, to be saved and written to in place."""
        return {"mean": self._mean, "square": self._square, "steps": self._steps}


OPTIMIZERS: Mapping[str, type[Adam | Sgd]] = {"adam": Adam, "sgd": Sgd}


@functools.cache
def adam_update() -> Callable[..., object]:
    """Return torch's fused AdamW kernel, one pass over memory, where it does what the public function does; else the function.

    The kernel is not a documented function, so it is tried once on four numbers.
    """

    def moved(update: Callable[..., object]) -> Tensor:
        vectors = torch.tensor([[0.0] * 4, [1.0] * 4, [0.0] * 4, [0.0] * 4]).unbind()
        _bound(update, vectors, torch.zeros(()), 0.5, 0.0)()
        return vectors[0]

    public = functools.partial(adamw, fused=False, foreach=False)
    try:
        if torch.allclose(moved(_kernel), moved(public)):
            return _kernel
        reason = f"it moved a parameter by {float(moved(_kernel)[0])} instead of {float(moved(public)[0])}"
    except (AttributeError, TypeError, RuntimeError) as error:  # missing, or with another signature
        reason = str(error)
    log.warning("torch's fused AdamW is not used: %s", reason)
    return public


def _bound(
    update: Callable[..., object], vectors: Sequence[Tensor], steps: Tensor, rate: float, decay: float
) -> Callable[[], object]:
    return functools.partial(update, *([vector] for vector in vectors), [], [steps], lr=rate, weight_decay=decay, **_ADAM)


def _kernel(*vectors: list[Tensor], **options: Any) -> None:
    vectors[-1][0].add_(1)  # the steps
    torch._fused_adamw_(*vectors, **options)
