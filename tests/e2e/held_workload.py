"""A workload of which one trial lasts until it is let go."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from tuneoff.workload import Configuration, TrialSeeds
from tuneoff_workloads.sleep import Sleep
from waiting import until

HELD, RELEASED = "held", "released"  # files in the folder


class Held(Sleep):
    """The sleep workload with an option `folder`: the trial that loads first trains until the file `released` is there."""

    name: ClassVar[str] = "held"

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__({name: value for name, value in options.items() if name != "folder"})
        self._folder = Path(options["folder"])
        self._is_held = False

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        super().load(configuration, seeds)
        try:
            (self._folder / HELD).touch(exist_ok=False)
        except FileExistsError:
            return
        self._is_held = True

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        if self._is_held:
            until((self._folder / RELEASED).exists, seconds=240)
        return super().train_epoch(epoch)
