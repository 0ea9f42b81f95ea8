"""Load a results folder in a process of its own: `python -m benchmarks.speed.loading_probe WHAT FOLDER TRIALS`.

All imports are done before, and what is repeated runs once untimed. pyarrow has all processors, as it has with a user.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas
import pyarrow

import tuneoff
from benchmarks.speed.derive_probe import peak_bytes
from tuneoff.record.results_folder import read_plan
from tuneoff.tell.frames.export import export
from tuneoff.tell.frames.load import COLUMNS, load
from tuneoff.tell.frames.tables import CHARGED, TABLES

SUMMARIZED = ["label", "sampler", *COLUMNS]
REPEATS = 3


def _summary(folder: Path) -> int:
    return int(tuneoff.load(folder).summary()["trials"].sum())


def _all(folder: Path) -> int:
    frames = tuneoff.load(folder)
    count = len(frames.trials)
    return min(count, int(frames.summary()["trials"].sum()))


def _plain_summary(folder: Path) -> int:
    return len(pandas.read_parquet(folder / "export" / "trials.parquet", columns=SUMMARIZED))


def _plain_all(folder: Path) -> int:
    return len(pandas.read_parquet(folder / "export" / "trials.parquet"))


def _records(folder: Path) -> int:
    return len(load(folder).trials)


def _records_without_energy(folder: Path) -> int:
    return len(load(folder).read("trials", [name for name in TABLES["trials"] if name not in CHARGED]))


def _export(folder: Path) -> int:
    export(folder, folder / "export", "parquet", [run.run_id for run in read_plan(folder).runs])
    count = len(pandas.read_parquet(folder / "export" / "trials.parquet", columns=["seed"]))
    for table in TABLES:
        (folder / "export" / f"{table}.parquet").unlink()
    return count


REPEATED: dict[str, Callable[[Path], int]] = {
    "summary": _summary,
    "all": _all,
    "plain summary": _plain_summary,
    "plain all": _plain_all,
}
ONCE: dict[str, Callable[[Path], int]] = {
    "records": _records,
    "records without energy": _records_without_energy,
    "export": _export,
}


def main(what: str, folder: Path, trials: int) -> None:
    pyarrow.set_cpu_count(os.cpu_count() or 1)
    source = load(folder).source
    expected = "records" if what in ONCE else "export"
    if source != expected:
        raise SystemExit(f"{what} must read the {expected}, but it reads the {source}")
    taken = []
    for number in range(1 if what in ONCE else 1 + REPEATS):
        started = time.perf_counter()
        count = {**REPEATED, **ONCE}[what](folder)
        if number or what in ONCE:
            taken.append(time.perf_counter() - started)
        if count != trials:
            raise SystemExit(f"{trials} trials were written, but {count} were read")
    print(json.dumps({"seconds": sorted(taken)[len(taken) // 2], "peak_bytes": peak_bytes()}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
