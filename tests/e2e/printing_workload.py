"""A training that prints much, and says last what it has to say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tuneoff.base.space import Float, SearchSpace
from tuneoff.workload import Configuration, Mode, TrialSeeds, Workload

FIRST, LAST = "the first words", "the last words"
LINES, LINE = 120_000, 99 * "x"  # 12 MB


class Printing(Workload):
    """Its only epoch prints 12 MB."""

    name: ClassVar[str] = "printing"
    metrics: ClassVar[Mapping[str, Mode]] = {"loss": "min"}
    default_metric: ClassVar[str] = "loss"
    default_epochs: ClassVar[int] = 1
    has_state: ClassVar[bool] = False
    has_test: ClassVar[bool] = False

    @classmethod
    def default_space(cls) -> SearchSpace:
        return SearchSpace({"x": Float(low=0.0, high=1.0)})

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        self._x = float(configuration["x"])

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        print(FIRST)
        for _ in range(LINES):
            print(LINE)
        print(LAST, flush=True)
        return {}

    def validate(self) -> Mapping[str, float]:
        return {"loss": self._x}
