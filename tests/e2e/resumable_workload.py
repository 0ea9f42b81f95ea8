"""A workload whose trials take a stated time, and whose checkpoint says whose it is: trials that were mixed up fail the test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

from tuneoff.errors import CheckpointError
from tuneoff.workload import Configuration, StateTensor, TrialSeeds
from tuneoff_workloads.sleep import Sleep


class Resumable(Sleep):
    """`sleep` with a state: the configuration that was trained."""

    name: ClassVar[str] = "resumable"
    has_state: ClassVar[bool] = True
    _trained: Configuration
    _epoch: int = 0

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        super().load(configuration, seeds)
        self._trained = dict(configuration)

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        self._epoch = epoch
        return super().train_epoch(epoch)

    def validate(self) -> Mapping[str, float]:
        """Return a loss that falls with every epoch: each one has a checkpoint."""
        loss = super().validate()["validation_loss"] + 1.0 / self._epoch
        return {"validation_loss": loss, "validation_accuracy": 1.0 - loss}

    def state_dict(self) -> tuple[Mapping[str, StateTensor], Mapping[str, str]]:
        return {}, {"configuration": json.dumps(self._trained, sort_keys=True)}

    def load_state_dict(self, tensors: Mapping[str, StateTensor], texts: Mapping[str, str]) -> None:
        found = json.loads(texts["configuration"])
        if found != self._trained:
            raise CheckpointError(f"the checkpoint must be of {self._trained}, but it is of {found}")
