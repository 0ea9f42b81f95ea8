"""The other side of `tuneoff faults`: what a plain program of a framework is given, and what it answers. Imports no framework.

Such a program is run as `python -m MODULE FOLDER`. It uses its framework as the framework's documentation does, and leaves to its
defaults whatever that leaves; it has each configuration trained by `PlainTask.train`, and at the end writes what the framework
says of the trials by `PlainTask.answer`. Where it cannot go on, it just ends: its exit code and its last line are what was seen.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tuneoff.trust.faultmatrix.classify import SEEDS, Claim
from tuneoff.workload import new_workload

TASK, ANSWER = "task.json", "answer.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainTask:
    """What a plain program has to do; `metric` is maximized or minimized (`mode`)."""

    folder: str  # for all files of the program and its framework
    configurations: tuple[Mapping[str, Any], ...]
    workload: str  # "module:Class"
    options: Mapping[str, Any]  # of the workload
    metric: str
    mode: str
    epochs: int
    workers: int
    is_again: bool = False  # started again after it was killed, in the same folder
    parent: int = 0  # the process that started it, and outlives it

    @classmethod
    def read(cls, folder: str | Path) -> PlainTask:
        """Return the task that lies in a folder."""
        data = json.loads((Path(folder) / TASK).read_text())
        return cls(**{**data, "configurations": tuple(data["configurations"])})

    def write(self) -> None:
        """Put the task into its folder."""
        (Path(self.folder) / TASK).write_text(json.dumps(asdict(self)))

    def train(self, index: int) -> Iterator[tuple[int, dict[str, float]]]:
        """Train a configuration by its index; yield (epoch, metrics) whenever something is to be reported."""
        workload = new_workload(self.workload, self.options)
        workload.load(self.configurations[index], SEEDS)
        deliveries = getattr(workload, "deliveries", lambda epoch, metrics: [(epoch, metrics)])
        for epoch in range(1, self.epochs + 1):
            workload.train_epoch(epoch)
            metrics = dict(workload.validate())
            for item, values in deliveries(epoch, metrics) if metrics else ():
                yield item, dict(values)

    def answer(self, claims: Iterable[Claim], best: tuple[int, float | None] | None) -> None:
        """Write what the framework says of its trials, and which configuration it names best, with which value."""
        path = Path(self.folder) / ANSWER
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps({"claims": [asdict(claim) for claim in claims], "best": best}))
        os.replace(temporary, path)


def read_answer(folder: Path) -> tuple[tuple[Claim, ...], tuple[int, float | None] | None] | None:
    """Return (claims, best) as a program wrote them, or None: it wrote nothing."""
    try:
        data = json.loads((folder / ANSWER).read_text())
    except (OSError, ValueError):
        return None
    best = data["best"]
    return tuple(Claim(**claim) for claim in data["claims"]), None if best is None else (best[0], best[1])
