"""A workload whose trials take memory in processes of their own, for tests of the limits."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from tuneoff.workload import Configuration, TrialSeeds
from tuneoff_workloads.surrogate import Surrogate

MEMORY_MB = 400.0  # limit of a worker: above what a process of any framework has by itself
HOLDS = "import time; block = bytearray(b'x') * 300_000_000; time.sleep(1.5)"
TAKES = "import time; blocks = [bytearray(b'x') * 600_000_000]; time.sleep(4)"
CHILD = "import subprocess, sys; subprocess.run([sys.executable, '-c', {script!r}], check=True)"
SHARED_BYTES, HOLD_SECONDS = 100_000_000, 0.5


class Hungry(Surrogate):
    """`takes` of the configuration says what its second epoch does."""

    name: ClassVar[str] = "hungry"
    default_options: ClassVar[Mapping[str, Any] | None] = {}

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._takes = "nothing"

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        super().load({"learning_rate": configuration["learning_rate"]}, seeds)
        self._takes = str(configuration["takes"])

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        if epoch == 2 and self._takes == "in a child's child":
            subprocess.run([sys.executable, "-c", CHILD.format(script=TAKES)], check=True)
        if epoch == 2 and self._takes == "300 MB in a child":
            subprocess.run([sys.executable, "-c", HOLDS], check=True)
        if epoch == 2 and self._takes == "shared":
            _share_with_children()
        return super().train_epoch(epoch)


def _share_with_children() -> None:
    """Hold pages with five forked processes: six times the pages by RSS, which is above the limit, once by PSS."""
    shared = mmap.mmap(-1, SHARED_BYTES)
    shared.write(b"x" * SHARED_BYTES)
    children = []
    for _ in range(5):
        pid = os.fork()
        if pid == 0:
            sum(shared[position] for position in range(0, SHARED_BYTES, mmap.PAGESIZE))
            time.sleep(HOLD_SECONDS)
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
