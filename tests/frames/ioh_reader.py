"""A reader of IOHprofiler's files, written after their description and by nothing of what writes them.

https://iohprofiler.github.io/IOHanalyzer/data/: metadata name a data file per dimension, whose blocks each begin with the line of
column names; a block is a run, in the order of the metadata, and ends with its last evaluation.
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Block:
    """One run. `target_at(y)`: evaluations until the value was y or better; None: never."""

    algorithm: str
    function: str
    dimension: int
    run: dict[str, Any]
    points: list[tuple[int, float]]

    def target_at(self, target: float) -> int | None:
        return next((evaluations for evaluations, value in self.points if value <= target), None)


def read(folder: Path) -> list[Block]:
    """Read every algorithm's folder; what the description forbids is a ValueError."""
    blocks = []
    for path in sorted(folder.rglob("*.json")):
        metadata = json.loads(path.read_text(), parse_constant=_no_constant)
        if path.name != f"IOHprofiler_f{metadata['function_id']}_{metadata['function_name']}.json":
            raise ValueError(f"{path.name} is not the name of its function")
        if metadata["maximization"] is not False or not isinstance(metadata["function_id"], int):
            raise ValueError("values must be minimized, and functions numbered")
        for scenario in metadata["scenarios"]:
            data = path.parent / scenario["path"]
            if not data.name.endswith(f"_DIM{scenario['dimension']}.dat"):
                raise ValueError(f"{data.name} is not of dimension {scenario['dimension']}")
            found = _blocks(data.read_text(), metadata["attributes"])
            if len(found) != len(scenario["runs"]):
                raise ValueError(f"{len(scenario['runs'])} runs, but {len(found)} blocks")
            for run, points in zip(scenario["runs"], found, strict=True):
                _check(run, points)
                blocks.append(Block(metadata["algorithm"]["name"], metadata["function_name"], scenario["dimension"], run, points))
    return blocks


def _blocks(text: str, names: list[str]) -> list[list[tuple[int, float]]]:
    found: list[list[tuple[int, float]]] = []
    for line in text.splitlines():
        fields = line.split(" ")
        if not fields[0].isdigit():
            if fields != names:
                raise ValueError(f"a separation line must be {names}, but is {line!r}")
            found.append([])
        else:
            evaluations, value = fields
            found[-1].append((int(evaluations), float(value)))
    return found


def _check(run: dict[str, Any], points: list[tuple[int, float]]) -> None:
    counts, values = [one for one, _ in points], [one for _, one in points]
    if counts != sorted(set(counts)) or counts[0] != 1 or counts[-1] != run["evals"]:
        raise ValueError(f"evaluations must rise from 1 to {run['evals']}, but are {counts}")
    if any(later > earlier for earlier, later in itertools.pairwise(values)):
        raise ValueError("the best value so far gets worse")
    if not all(math.isfinite(value) for value in values):
        raise ValueError("values must be finite")
    best = run["best"]
    if best["y"] != min(values) or (best["evals"], best["y"]) not in points or set(best) != {"evals", "y", "x"}:
        raise ValueError("the best value is not that of the data")


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no JSON")
