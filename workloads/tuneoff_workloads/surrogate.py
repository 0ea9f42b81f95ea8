"""The workload `surrogate`: a cheap learning curve with a known optimum, to check samplers and pruners.

With d = (the distances below), a configuration's loss after epoch e is

    loss(e) = floor + (start - floor) exp(-e / tau),
    floor = 0.05 + 1.0 d_rate^2 + 0.3 d_width^2 + 0.2 d_dropout^2,
    tau = 1 + 4 |d_rate| + 2 d_width^2,
    start = ln 10,

    d_rate = (log10 learning_rate + 2.5) / 2, d_width = (log2 hidden_width - 7) / 4, d_dropout = dropout - 0.2.

Floor and tau are least at one configuration, so it is the best after every epoch: learning_rate 10^-2.5, hidden_width 128,
dropout 0.2. Curves of other configurations cross: a bad floor can come with a quick start.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from tuneoff.base.identity import derive_seed, is_finite
from tuneoff.base.space import Float, IntegerLog, SearchSpace, extremes, stepped
from tuneoff.base.targets import unknown_option
from tuneoff.errors import CheckpointError, ExperimentError
from tuneoff.workload import Configuration, Mode, Scores, StateTensor, TrialSeeds, Workload

START_LOSS = math.log(10.0)
OPTIMUM: Mapping[str, float] = {"learning_rate": 10**-2.5, "hidden_width": 128, "dropout": 0.2}


def surrogate_loss(configuration: Configuration, epoch: int) -> float:
    """Return the loss after `epoch` epochs, without noise; missing hyperparameters are at their best value."""
    values: dict[str, float] = {**OPTIMUM, **configuration}
    rate = (math.log10(values["learning_rate"]) + 2.5) / 2
    width = (math.log2(values["hidden_width"]) - 7) / 4
    dropout = values["dropout"] - 0.2
    floor = 0.05 + rate**2 + 0.3 * width**2 + 0.2 * dropout**2
    tau = 1 + 4 * abs(rate) + 2 * width**2
    return floor + (START_LOSS - floor) * math.exp(-epoch / tau)


def accuracy_of(loss: float) -> float:
    """Return the accuracy that goes with a loss: exp(-loss), at most 1."""
    return math.exp(-max(loss, 0.0))


class Surrogate(Workload):
    """Options: `noise`, standard deviation of Gaussian noise on each validation loss, drawn from the trial's seed and epoch;
    `epoch_seconds`, for which each epoch sleeps.
    """

    name: ClassVar[str] = "surrogate"
    metrics: ClassVar[Mapping[str, Mode]] = {"validation_loss": "min", "validation_accuracy": "max"}
    default_metric: ClassVar[str] = "validation_loss"
    default_epochs: ClassVar[int] = 9
    training_algorithm: ClassVar[str] = "closed-form learning curve"
    restores_training: ClassVar[bool] = True
    default_options: ClassVar[Mapping[str, Any] | None] = {"noise": 0.0, "epoch_seconds": 0.0}
    foreign_options: ClassVar[frozenset[str]] = frozenset({"noise", "epoch_seconds"})

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        if problem := unknown_option(self.name, options, self.default_options or {}):
            raise ExperimentError(problem)
        self._noise, self._seconds = options.get("noise", 0.0), options.get("epoch_seconds", 0.0)
        for name, value in (("noise", self._noise), ("epoch_seconds", self._seconds)):
            if not is_finite(value) or value < 0:
                raise ExperimentError(f"{self.name}: `{name}` must be a number of at least 0, but got {value!r}")
        self._configuration: Configuration = {}
        self._seed = 0
        self._epoch = 0

    @classmethod
    def default_space(cls) -> SearchSpace:
        return SearchSpace(
            {
                "learning_rate": Float(low=1e-5, high=1e-1, log=True),
                "hidden_width": IntegerLog(low=8, high=1024),
                "dropout": stepped(0.0, 0.8, 0.1, integer=False),
            }
        )

    def check_space(self, space: SearchSpace) -> None:
        for name, dimension in space:
            if name not in OPTIMUM:
                raise ExperimentError(f"{self.name} has no hyperparameter {name!r}; it knows {', '.join(OPTIMUM)}")
            for value in extremes(dimension):
                if not is_finite(value) or value < 0 or (name != "dropout" and value == 0):
                    least = "at least 0" if name == "dropout" else "above 0"
                    raise ExperimentError(f"{self.name}: `{name}` must be a number {least}, but got {value!r}")

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        self._configuration, self._seed, self._epoch = configuration, seeds.trial, 0

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        self._epoch = epoch
        if self._seconds:
            time.sleep(self._seconds)
        return {"train_loss": surrogate_loss(self._configuration, epoch)}

    def validate(self) -> Mapping[str, float]:
        loss = surrogate_loss(self._configuration, self._epoch)
        if self._noise:
            loss += random.Random(derive_seed("noise", self._seed, self._epoch)).gauss(0.0, self._noise)
        return {"validation_loss": loss, "validation_accuracy": accuracy_of(loss)}

    def test(self) -> Scores:
        loss = surrogate_loss(self._configuration, self._epoch)
        return Scores(values={"test_loss": loss, "test_accuracy": accuracy_of(loss)})

    def state_dict(self) -> tuple[Mapping[str, StateTensor], Mapping[str, str]]:
        return {"epoch": StateTensor(dtype="I64", shape=(1,), data=self._epoch.to_bytes(8, "little"))}, {}

    def load_state_dict(self, tensors: Mapping[str, StateTensor], texts: Mapping[str, str]) -> None:
        if "epoch" not in tensors:
            raise CheckpointError("the checkpoint has no tensor 'epoch'; it was written by another workload")
        self._epoch = int.from_bytes(tensors["epoch"].data, "little")
