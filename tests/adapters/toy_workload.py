"""A workload for tests of adapters: a curve that falls with the epochs, and a fault that the configuration asks for."""

from __future__ import annotations

import ctypes
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from tuneoff.base.processes import kill_from_outside
from tuneoff.base.space import Categorical, Float, SearchSpace
from tuneoff.workload import Configuration, Mode, Scores, TrialSeeds, Workload

FAULTS = ("none", "raise", "nan", "exit", "system_exit", "sigkill", "sigkill_once")
FAULT_SPACE = SearchSpace({"x": Float(low=0.0, high=1.0), "fault": Categorical(choices=FAULTS)})


class Toy(Workload):
    """Loss x + 1 / epoch; `fault` strikes in epoch 2. Options: `epoch_seconds`, `folder` (where "once" is remembered)."""

    name = "toy"
    metrics: ClassVar[Mapping[str, Mode]] = {"loss": "min"}
    default_metric = "loss"
    default_epochs = 3
    has_state = False

    @classmethod
    def default_space(cls) -> SearchSpace:
        return SearchSpace({"x": Float(low=0.0, high=1.0)})

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        self._configuration = configuration

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        self._epoch = epoch
        if seconds := float(self.options.get("epoch_seconds", 0.0)):
            time.sleep(seconds)
        if epoch == 2:
            self._strike(str(self._configuration.get("fault", "none")))
        return {}

    def validate(self) -> Mapping[str, float]:
        if self._epoch == 2 and self._configuration.get("fault") == "nan":
            return {"loss": math.nan}
        return {"loss": toy_loss(self._configuration, self._epoch)}

    def test(self) -> Scores:
        return Scores(values={"test_loss": toy_loss(self._configuration, 1000)})

    def _strike(self, fault: str) -> None:
        if fault == "raise":
            raise RuntimeError("the toy broke")
        if fault == "exit":
            os._exit(7)
        if fault == "system_exit":
            raise SystemExit(9)
        if fault == "sigkill" or (fault == "sigkill_once" and self._first_time()):
            kill_from_outside()

    def _first_time(self) -> bool:
        mark = Path(self.options["folder"]) / f"{self._configuration['x']!r}"
        if mark.exists():
            return False
        mark.touch()
        return True


class Holding(Toy):
    """The first trial keeps all other threads of its process from running for 5 s: in its second epoch, or in its `close`.

    Options: `folder`, as above; `hold`: "train_epoch" or "close".
    """

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        if epoch == 2:
            self._hold("train_epoch")
        return super().train_epoch(epoch)

    def close(self) -> None:
        self._hold("close")

    def _hold(self, where: str) -> None:
        mark = Path(self.options["folder"], "held")
        if where == self.options["hold"] and not mark.exists():
            mark.touch()
            ctypes.PyDLL(None).sleep(5)  # which does not release the interpreter's lock


def toy_loss(configuration: Mapping[str, Any], epoch: int) -> float:
    """Return the validation loss after `epoch`."""
    return float(configuration["x"]) + 1.0 / epoch
