"""What an adapter's author gives for `tuneoff faults`: `FaultTools`, and a plain program of the framework. Imports no framework.

A plain program is run as `python -m MODULE FOLDER`. It uses its framework as the documentation of that does, and leaves to its
defaults whatever that leaves; it has each configuration trained by `PlainTask.train`, and at the end writes what the framework
says of the trials by `PlainTask.answer`. Where it cannot go on, it just ends: its exit code and its last line are what was seen.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tuneoff.workload import TrialSeeds, new_workload

TASK, ANSWER = "task.json", "answer.json"
SEEDS = TrialSeeds(split=0, trial=0)
State = Literal["completed", "failed", "unfinished"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a framework outside its trials, and how it is taken away: exactly one of `process`, `file` and `lock`."""

    fault: str  # that strikes it: head_killed, node_killed, storage_removed, storage_locked
    text: str  # what it is
    process: str = ""  # words of the command line of the process that is killed
    file: str = ""  # the name of the file that is removed
    lock: str = ""  # the name of the file whose lock, a link `<name>.lock` beside it, is left by a holder that died


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultTools:
    """For one framework; its adapter's class names it in `fault_tools`, as "module:NAME"."""

    plain: str  # module of a program that uses the framework by itself, as its documentation does
    defaults: str  # what that program leaves to the framework's defaults, for the reader
    parts: tuple[Part, ...] = ()

    def part(self, fault: str) -> Part | None:
        """Return the part that a fault takes away, or None: the framework has no such part."""
        return next((part for part in self.parts if part.fault == fault), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a run says of one trial; `value`: the result that it keeps for it, None for none."""

    index: int  # of the configuration in the list
    state: State
    value: float | None = None
    text: str = ""  # its words for it


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
        for epoch in range(1, self.epochs + 1):
            workload.train_epoch(epoch)
            metrics = dict(workload.validate())
            for item, values in workload.to_report(epoch, metrics) if metrics else ():
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
