"""Adam and SGD with momentum on one flat parameter vector, both with decoupled weight decay.

`torch.optim` is not used: the first optimizer that it makes in a process imports torch._dynamo, about a second that each fresh
trial process would pay.

Source: Adam, arXiv 1412.6980; decoupled weight decay (AdamW, SGDW), arXiv 1711.05101.
"""

from __future__ import annotations

import functools
import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from tuneoff_workloads.mnist_mlp.specification import Hyperparameters

log = logging.getLogger(__name__)


class Optimizer(ABC):
    """Updates `parameters` in place from `gradients`; both are flat float32 vectors of one length."""

    def __init__(self, parameters: Tensor, gradients: Tensor, learning_rate: float, weight_decay: float) -> None:
        self.parameters = parameters
        self.gradients = gradients
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.steps = 0

    @abstractmethod
    def step(self) -> None:
        """Take one step."""

    @abstractmethod
    def moments(self) -> Mapping[str, Tensor]:
        """Return the optimizer's state by name, flat vectors like the parameters, to be saved and written to in place."""

    def set_steps(self, steps: int) -> None:
        """Set the number of steps taken, after the state was restored."""
        self.steps = steps


class Sgd(Optimizer):
    """Stochastic gradient descent: v = momentum v + g; p = p (1 - lr wd) - lr v."""

    def __init__(self, parameters: Tensor, gradients: Tensor, learning_rate: float, weight_decay: float, momentum: float) -> None:
        super().__init__(parameters, gradients, learning_rate, weight_decay)
        self._momentum = momentum
        self._velocity = torch.zeros_like(parameters)

    def step(self) -> None:
        self.steps += 1
        torch.add(self.gradients, self._velocity, alpha=self._momentum, out=self._velocity)
        if self.weight_decay:
            self.parameters.mul_(1 - self.learning_rate * self.weight_decay)
        self.parameters.add_(self._velocity, alpha=-self.learning_rate)

    def moments(self) -> Mapping[str, Tensor]:
        return {"velocity": self._velocity}


class Adam(Optimizer):
    """Adam with bias correction, written with public operations of torch; `FusedAdam` does the same in one pass.

    p = p (1 - lr wd) - lr mean / (1 - b1^t) / (sqrt(square / (1 - b2^t)) + epsilon), with the usual running means of g and g^2.
    """

    beta1 = 0.9
    beta2 = 0.999
    epsilon = 1e-8

    def __init__(self, parameters: Tensor, gradients: Tensor, learning_rate: float, weight_decay: float) -> None:
        super().__init__(parameters, gradients, learning_rate, weight_decay)
        self._mean = torch.zeros_like(parameters)
        self._square = torch.zeros_like(parameters)
        self._scratch = torch.empty_like(parameters)

    def step(self) -> None:
        self.steps += 1
        first, second = 1 - self.beta1**self.steps, math.sqrt(1 - self.beta2**self.steps)
        self._mean.lerp_(self.gradients, 1 - self.beta1)
        self._square.mul_(self.beta2).addcmul_(self.gradients, self.gradients, value=1 - self.beta2)
        torch.sqrt(self._square, out=self._scratch).add_(self.epsilon * second)
        if self.weight_decay:
            self.parameters.mul_(1 - self.learning_rate * self.weight_decay)
        self.parameters.addcdiv_(self._mean, self._scratch, value=-self.learning_rate * second / first)

    def moments(self) -> Mapping[str, Tensor]:
        return {"mean": self._mean, "square": self._square}


class FusedAdam(Adam):
    """Adam by the kernel behind `torch.optim.AdamW(fused=True)`: one pass over memory instead of six, twice as fast."""

    def __init__(self, parameters: Tensor, gradients: Tensor, learning_rate: float, weight_decay: float) -> None:
        super().__init__(parameters, gradients, learning_rate, weight_decay)
        self._count = torch.zeros((), device=parameters.device)
        kernel = fused_kernel()
        if kernel is None:
            raise RuntimeError("this torch has no fused AdamW kernel; use `Adam`")
        state: tuple[list[Tensor], ...]
        state = ([self.parameters], [self.gradients], [self._mean], [self._square], [], [self._count])
        self._update = functools.partial(
            kernel,
            *state,
            lr=learning_rate,
            beta1=self.beta1,
            beta2=self.beta2,
            weight_decay=weight_decay,
            eps=self.epsilon,
            amsgrad=False,
            maximize=False,
        )

    def step(self) -> None:
        self.steps += 1
        self._count.add_(1)
        self._update()

    def set_steps(self, steps: int) -> None:
        super().set_steps(steps)
        self._count.fill_(steps)


def make_optimizer(hyperparameters: Hyperparameters, parameters: Tensor, gradients: Tensor) -> Optimizer:
    """Return the optimizer that the hyperparameters name; Adam in its fused form where this torch has it."""
    rate, decay = hyperparameters.learning_rate, hyperparameters.weight_decay
    if hyperparameters.optimizer == "sgd":
        return Sgd(parameters, gradients, rate, decay, hyperparameters.momentum)
    if fused_kernel() is None:
        return Adam(parameters, gradients, rate, decay)
    return FusedAdam(parameters, gradients, rate, decay)


@functools.cache
def fused_kernel() -> Callable[..., Any] | None:
    """Return torch's fused AdamW update, or None where this torch has none or another one than we know.

    It is the public optimizer's kernel but not itself a documented function, so it is tried once on four numbers.
    """
    kernel: Callable[..., Any] | None = getattr(torch, "_fused_adamw_", None)
    if kernel is None:
        return None
    p, g, mean, square = torch.zeros(4), torch.ones(4), torch.zeros(4), torch.zeros(4)
    options = {"lr": 0.5, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.0, "eps": 1e-8, "amsgrad": False, "maximize": False}
    try:
        kernel([p], [g], [mean], [square], [], [torch.ones(())], **options)
    except (TypeError, RuntimeError) as error:  # another signature
        log.warning("torch's fused AdamW is not used: %s", error)
        return None
    if not torch.allclose(p, torch.full((4,), -0.5)):
        log.warning("torch's fused AdamW is not used: it moved a parameter by %s instead of -0.5", float(p[0]))
        return None
    return kernel
