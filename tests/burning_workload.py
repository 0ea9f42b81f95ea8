"""A workload that uses a processor as much as it gets, and tells which ones it may use."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from tuneoff.base.space import Float, SearchSpace
from tuneoff.workload import Configuration, Mode, Scores, TrialSeeds, Workload


class Burning(Workload):
    """Each epoch lasts `epoch_seconds` and is busy all the time."""

    name: ClassVar[str] = "burning"
    metrics: ClassVar[Mapping[str, Mode]] = {"validation_loss": "min", "processor": "min"}
    default_metric: ClassVar[str] = "validation_loss"
    default_epochs: ClassVar[int] = 1
    has_state: ClassVar[bool] = False

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._x = 0.0

    @classmethod
    def default_space(cls) -> SearchSpace:
        return SearchSpace({"x": Float(low=0.0, high=1.0)})

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        self._x = float(configuration["x"])

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        end = time.monotonic() + float(self.options["epoch_seconds"])
        while time.monotonic() < end:
            pass
        return {}

    def validate(self) -> Mapping[str, float]:
        return {"validation_loss": self._x, "processor": float(min(os.sched_getaffinity(0)))}

    def test(self) -> Scores:
        return Scores(values={"test_loss": self._x})
