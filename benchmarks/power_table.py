"""Derive the table of watts per hardware thread from SPECpower_ssj2008 results.

    python benchmarks/power_table.py SPECPOWER.csv > core/tuneoff/measure/power/tables/cpu_watts.json

SPECPOWER.csv holds one published result per row, with the columns named in `COLUMNS` (the file specpower_ssj2008.csv of the
repository cloud-carbon-footprint/ccf-coefficients has them). Watts of the whole server are divided by its hardware threads. A
row of the table is a generation of `tuneoff.measure.power.generations`, by the name of the CPU; one with fewer than
`LEAST_RESULTS` is left out. `default` holds all servers published since `DEFAULT_SINCE`, whatever their CPU.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tuneoff.measure.power.cpu_table import CpuTable
from tuneoff.measure.power.generations import GENERATIONS, plain

IDLE, FULL = "avg. watts @ active idle", "avg. watts @ 100%"
COLUMNS = ("CPU Description", IDLE, FULL, "Total Threads", "# Threads Per Core", "Published")
LEAST_RESULTS = 4
DEFAULT_SINCE = 2023
QUANTILES = (0.05, 0.5, 0.95)
SOURCE = (
    "SPECpower_ssj2008 results published by SPEC (spec.org/power_ssj2008), as collected in "
    "cloud-carbon-footprint/ccf-coefficients (commit b0032d9, 2026-04-24, Apache-2.0); "
    "watts of the whole server divided by its hardware threads"
)
DATE = "2026-04-24"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One published result: watts per hardware thread, at active idle and at full load."""

    cpu: str
    idle: float
    full: float
    threads_per_core: int
    year: int


def read_results(path: Path) -> list[Result]:
    """Return the results of a file.

    Raises:
        ValueError: a column is missing, or a row does not hold `0 < idle < full`.
    """
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
        if missing:
            raise ValueError(f"{path} must have the columns {', '.join(COLUMNS)}, but lacks {', '.join(missing)}")
        return [_result(path, number, row) for number, row in enumerate(reader, 2)]


def _result(path: Path, number: int, row: dict[str, str]) -> Result:
    threads = float(row["Total Threads"])
    idle, full = float(row[IDLE]) / threads, float(row[FULL]) / threads
    if not 0 < idle < full:
        raise ValueError(f"{path} line {number}: `0 < idle < full` must hold, but got {idle} and {full} W per thread")
    return Result(
        cpu=plain(row["CPU Description"]),
        idle=idle,
        full=full,
        threads_per_core=int(row["# Threads Per Core"]),
        year=int(row["Published"].rpartition("-")[2]),
    )


def derive(results: Sequence[Result]) -> dict[str, Any]:
    """Return the table as JSON values.

    Raises:
        ValueError: patterns of two generations match one CPU.
    """
    rows = {}
    for cpu in {result.cpu for result in results}:
        generations = [generation for generation in GENERATIONS if generation.is_named(cpu)]
        if len(generations) > 1:
            keys = ", ".join(generation.key for generation in generations)
            raise ValueError(f"a CPU must be of one generation, but {cpu!r} is named by {keys}; correct their patterns")
    for generation in GENERATIONS:
        matching = [result for result in results if generation.is_named(result.cpu)]
        if generation.threads_per_core is not None:
            matching = [result for result in matching if result.threads_per_core == generation.threads_per_core]
        if len(matching) >= LEAST_RESULTS:
            rows[generation.key] = row(matching)
    recent = [result for result in results if result.year >= DEFAULT_SINCE]
    return {"source": SOURCE, "date": DATE, "default_since": DEFAULT_SINCE, "default": row(recent), "generations": rows}


def row(results: Sequence[Result]) -> dict[str, Any]:
    """Return the row of a group: count, years, means; 5, 50 and 95 % quantiles of idle, full, full - idle, and idle over that."""
    idle, full = [result.idle for result in results], [result.full for result in results]
    return {
        "results": len(results),
        "first": min(result.year for result in results),
        "last": max(result.year for result in results),
        "idle_mean": round(statistics.mean(idle), 4),
        "full_mean": round(statistics.mean(full), 4),
        "idle": quantiles(idle),
        "full": quantiles(full),
        "dynamic": quantiles(result.full - result.idle for result in results),
        "ratio": quantiles(result.idle / (result.full - result.idle) for result in results),
    }


def quantiles(values: Iterable[float]) -> list[float]:
    """Return the 5, 50 and 95 % quantiles, linear between neighbours."""
    ordered = sorted(values)
    cuts = []
    for share in QUANTILES:
        rank = share * (len(ordered) - 1)
        below = int(rank)
        above = min(below + 1, len(ordered) - 1)
        cuts.append(round(ordered[below] + (rank - below) * (ordered[above] - ordered[below]), 4))
    return cuts


def problems(table: Mapping[str, Any]) -> list[str]:
    """Return one line for each row of a table that no group of servers can have.

    The watts must hold `0.1 < idle < full < 12`, quantiles must rise, and no generation may hold most of all results: a
    pattern that matches everything does.
    """
    checked = msgspec.convert(dict(table), CpuTable)
    lines = []
    for name, row in {"default": checked.default, **checked.generations}.items():
        if not (0.1 < row.idle[1] < row.full[1] < 12 and 0.1 < row.idle_mean < row.full_mean < 12):
            watts = f"{row.idle[1]} and {row.full[1]} (means {row.idle_mean} and {row.full_mean})"
            lines.append(f"{name}: `0.1 < idle < full < 12` W per thread must hold, but got {watts}")
        for part, values in (("idle", row.idle), ("full", row.full), ("dynamic", row.dynamic), ("ratio", row.ratio)):
            if not 0 < values[0] <= values[1] <= values[2]:
                lines.append(f"{name}: quantiles of {part} must rise and be above 0, but got {values}")
    total = sum(row.results for row in checked.generations.values())
    lines += [
        f"{name}: holds {row.results} of {total} results; its pattern matches other CPUs"
        for name, row in checked.generations.items()
        if row.results > total / 2
    ]
    keys = {generation.key for generation in GENERATIONS}
    lines += [f"{name}: no such generation" for name in checked.generations if name not in keys]
    return lines


def render(table: dict[str, Any]) -> str:
    """Return the table as JSON text, one line per row."""
    lines = [f" {json.dumps(name)}: {json.dumps(value)}," for name, value in table.items() if name != "generations"]
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in table["generations"].items())
    return "\n".join(("{", *lines, ' "generations": {', rows, " }", "}"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table to standard output; 1, with the problems on standard error, where it is not plausible."""
    parser = argparse.ArgumentParser(description="Derive the table of watts per hardware thread from SPECpower results.")
    parser.add_argument("results", type=Path, metavar="SPECPOWER.csv")
    table = derive(read_results(parser.parse_args(arguments).results))
    complaints = problems(table)
    if complaints:
        print("\n".join(complaints), file=sys.stderr)
        return 1
    print(render(table))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
