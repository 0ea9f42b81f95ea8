"""A workload whose process may end in the middle of training, without a word and with exit code 0."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tuneoff.workload import Configuration, TrialSeeds
from tuneoff_workloads.null import Null


class Quitting(Null):
    """The null workload that quits in epoch `quit`, a hyperparameter; 0: never."""

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        super().load(configuration, seeds)
        self._last = int(configuration["quit"])

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        if epoch == self._last:
            os._exit(0)
        return {}
