"""What each script trains: configurations and seeds of a file, by the workload's own methods, without tuneoff's trial."""

from __future__ import annotations

import atexit
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

WORKERS = 2


def trainings(path: str) -> list[dict[str, Any]]:
    """Return the trainings of a file: configuration, seeds, options and epochs of each."""
    rows: list[dict[str, Any]] = json.loads(Path(path).read_text())
    return rows


def train(training: Mapping[str, Any]) -> float:
    """Train on one thread and return the best validation accuracy of the epochs."""
    from tuneoff.workload import TrialSeeds
    from tuneoff_workloads.mnist_mlp import MnistMlp

    workload = MnistMlp(training["options"])
    workload.limit_threads(1)
    workload.load(training["configuration"], TrialSeeds(**training["seeds"]))
    best = 0.0
    for epoch in range(1, training["epochs"] + 1):
        workload.train_epoch(epoch)
        best = max(best, workload.validate()["validation_accuracy"])
    return best


def end_at_once() -> None:
    """Have this process end without the interpreter's teardown, which takes long where torch is imported."""
    atexit.register(lambda: (sys.stdout.flush(), os._exit(0)))  # what is registered first is called last


def tell(started: float, values: Sequence[float]) -> None:
    """Print the job time since `started` (`time.monotonic`) and the values, as the last line."""
    print(json.dumps({"job_seconds": time.monotonic() - started, "values": sorted(values)}), flush=True)
