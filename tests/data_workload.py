"""A workload whose values follow from a file that nobody pinned: TUNEOFF_TEST_DATA names it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from tuneoff.base.space import Float, SearchSpace
from tuneoff.errors import DataError
from tuneoff.workload import Configuration, DataDescription, Mode, Scores, TrialSeeds, Workload

VARIABLE = "TUNEOFF_TEST" + "_DATA"  # no variable of tuneoff's own


class FromFile(Workload):
    """Its accuracy is a hash of file, configuration, seed and epoch."""

    name: ClassVar[str] = "from-file"
    metrics: ClassVar[Mapping[str, Mode]] = {"validation_accuracy": "max"}
    default_metric: ClassVar[str] = "validation_accuracy"
    default_epochs: ClassVar[int] = 2
    has_state: ClassVar[bool] = False

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._key = ""
        self._epoch = 0

    @classmethod
    def default_space(cls) -> SearchSpace:
        return SearchSpace({"x": Float(low=0.0, high=1.0)})

    def prepare(self) -> DataDescription:
        path = Path(os.environ.get(VARIABLE, "not-there"))
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}; set {VARIABLE}") from error
        digest = hashlib.sha256(content).hexdigest()
        return DataDescription(
            name="pupils", version="1", sha256={"pupils.csv": digest}, size_bytes=len(content), paths={"pupils.csv": str(path)}
        )

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        content = Path(os.environ[VARIABLE]).read_bytes()
        self._key = f"{hashlib.sha256(content).hexdigest()} {sorted(configuration.items())} {seeds.trial}"

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        self._epoch = epoch
        return {}

    def validate(self) -> Mapping[str, float]:
        return {"validation_accuracy": self._value(f"validation {self._epoch}")}

    def test(self) -> Scores:
        return Scores(values={"test_accuracy": self._value("test")})

    def _value(self, what: str) -> float:
        return int(hashlib.sha256(f"{what} {self._key}".encode()).hexdigest()[:8], 16) / 2**32
