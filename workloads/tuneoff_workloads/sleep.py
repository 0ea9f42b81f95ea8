"""The workload `sleep`: stated seconds per step and no computation, to measure overhead at a known trial length."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from tuneoff.base.identity import is_finite
from tuneoff.base.space import Float, SearchSpace, extremes
from tuneoff.base.targets import unknown_option
from tuneoff.errors import ExperimentError
from tuneoff.workload import Configuration, Mode, Scores, TrialSeeds, Workload
from tuneoff_workloads.null import null_loss

_DEFAULTS = {"load_seconds": 0.0, "epoch_seconds": 1.0, "validate_seconds": 0.0, "test_seconds": 0.0}
_HYPERPARAMETER = "epoch_seconds"


class Sleep(Workload):
    """Options: seconds of each step. A hyperparameter `epoch_seconds` overrides the option, for trials of unequal length.

    Takes any other hyperparameters; the loss is that of `null`.
    """

    name: ClassVar[str] = "sleep"
    metrics: ClassVar[Mapping[str, Mode]] = {"validation_loss": "min", "validation_accuracy": "max"}
    default_metric: ClassVar[str] = "validation_loss"
    default_epochs: ClassVar[int] = 1
    has_state: ClassVar[bool] = False
    training_algorithm: ClassVar[str] = "none"
    default_options: ClassVar[Mapping[str, Any] | None] = _DEFAULTS
    foreign_options: ClassVar[frozenset[str]] = frozenset(_DEFAULTS)

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        if problem := unknown_option("sleep", options, _DEFAULTS):
            raise ExperimentError(problem)
        self._seconds = {**_DEFAULTS, **options}
        for name, value in self._seconds.items():
            _check_seconds(name, value)
        self._loss = math.nan

    @classmethod
    def default_space(cls) -> SearchSpace:
        return SearchSpace({"x": Float(low=-1.0, high=1.0)})

    def check_space(self, space: SearchSpace) -> None:
        dimension = space.dimensions.get(_HYPERPARAMETER)
        if dimension is not None:
            for value in extremes(dimension):
                _check_seconds(_HYPERPARAMETER, value)

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        self._seconds[_HYPERPARAMETER] = configuration.get(_HYPERPARAMETER, self._seconds[_HYPERPARAMETER])
        self._loss = null_loss(configuration)
        time.sleep(self._seconds["load_seconds"])

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        time.sleep(self._seconds["epoch_seconds"])
        return {}

    def validate(self) -> Mapping[str, float]:
        time.sleep(self._seconds["validate_seconds"])
        return {"validation_loss": self._loss, "validation_accuracy": 1.0 - self._loss}

    def test(self) -> Scores:
        time.sleep(self._seconds["test_seconds"])
        return Scores(values={"test_loss": self._loss, "test_accuracy": 1.0 - self._loss})


def _check_seconds(name: str, value: Any) -> None:
    if not is_finite(value) or value < 0:
        raise ExperimentError(f"sleep: `{name}` must be a number of seconds of at least 0, but got {value!r}")
