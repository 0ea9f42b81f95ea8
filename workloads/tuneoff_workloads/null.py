"""The workload `null`: a known function of the configuration that takes no time, to measure what a framework costs."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from typing import Any, ClassVar

from tuneoff.base.identity import canonical_json
from tuneoff.base.space import Float, SearchSpace
from tuneoff.errors import ExperimentError
from tuneoff.workload import Configuration, Mode, Scores, TrialSeeds, Workload

_LARGE = 1e150  # from here on a square may be infinite


def null_loss(configuration: Configuration) -> float:
    """Return the mean over the hyperparameters of x^2 / (1 + x^2), in [0, 1]; the least value 0 is at x = 0.

    A value that is not a number counts as the CRC-32 of its canonical JSON divided by 2^32.
    """
    total = 0.0
    for value in configuration.values():
        if isinstance(value, int | float) and not isinstance(value, bool):
            total += value * value / (1.0 + value * value) if abs(value) < _LARGE else 1.0
        else:
            total += zlib.crc32(canonical_json(value).encode()) / 2**32
    return total / len(configuration) if configuration else 0.0


class Null(Workload):
    """Takes any search space and no options; loss and accuracy are the same in every epoch and on the test."""

    name: ClassVar[str] = "null"
    metrics: ClassVar[Mapping[str, Mode]] = {"validation_loss": "min", "validation_accuracy": "max"}
    default_metric: ClassVar[str] = "validation_loss"
    default_epochs: ClassVar[int] = 1
    has_state: ClassVar[bool] = False
    training_algorithm: ClassVar[str] = "none"
    default_options: ClassVar[Mapping[str, Any] | None] = {}

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        if options:
            raise ExperimentError(f"workload {self.name!r} has no options, but got {', '.join(sorted(options))}; remove them")
        self._loss = math.nan

    @classmethod
    def default_space(cls) -> SearchSpace:
        return SearchSpace({"x": Float(low=-1.0, high=1.0)})

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        self._loss = null_loss(configuration)

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        return {}

    def validate(self) -> Mapping[str, float]:
        return {"validation_loss": self._loss, "validation_accuracy": 1.0 - self._loss}

    def test(self) -> Scores:
        return Scores(values={"test_loss": self._loss, "test_accuracy": 1.0 - self._loss})
