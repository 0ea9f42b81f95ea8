"""A workload that prints wherever it can."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import ClassVar

from tuneoff.workload import Configuration, TrialSeeds
from tuneoff_workloads.null import Null

print("printed while it is imported", end="")


class Chatty(Null):
    """The null workload with half lines on standard output, of its own and of a child's."""

    preload: ClassVar[tuple[str, ...]] = ("json",)

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        super().load(configuration, seeds)
        subprocess.run(["sh", "-c", "printf 'half a line from a child'"], check=True)

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        print("half a line", end="", flush=True)
        return {}
