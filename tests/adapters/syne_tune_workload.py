"""A toy workload with the faults that end a whole tuning in Syne Tune."""

from __future__ import annotations

import os
from collections.abc import Mapping

from adapters.toy_workload import Toy
from tuneoff.base.space import Categorical, Float, SearchSpace

TARGET = f"{__name__}:Mute"
FAULTS = ("vanish", "babble", "none")
FAULT_SPACE = SearchSpace({"x": Float(low=0.0, high=1.0), "fault": Categorical(choices=FAULTS)})


class Mute(Toy):
    """`vanish`: ends with exit code 0 before its first report. `babble`: prints what looks like a broken report."""

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        fault = self._configuration.get("fault")
        if fault == "vanish":
            os._exit(0)
        if fault == "babble":
            print("[tune-metric]: {not json}", flush=True)
        return super().train_epoch(epoch)
