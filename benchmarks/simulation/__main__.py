"""`python -m benchmarks.simulation [--repetitions N]`: simulate, print the tables of docs/statistics.md as markdown.

Exit code 0 where every requirement holds, 1 where one does not; the cell is marked (!).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator

from benchmarks.simulation import coverage, tasks, verdicts
from benchmarks.simulation.distributions import ALL
from benchmarks.simulation.row import SimulationRow, table
from tuneoff.judge.stats.power import detectable

REPETITIONS = 10_000
PLANNED = (5, 10, 12, 15, 20, 30, 50)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help="per cell; default %(default)s")
    repetitions = parser.parse_args().repetitions
    started = time.monotonic()
    print(f"{repetitions} repetitions per cell; figures in %.\n")
    for distribution in ALL:
        print(f"- {distribution.name}: {distribution.text}")
    parts: tuple[tuple[str, Callable[[int], Iterator[SimulationRow]]], ...] = (
        ("Coverage of the 95 % intervals", coverage.rows),
        ("Family-wise wins of equal adapters", verdicts.null_rows),
        ("Skewed differences", verdicts.skewed_rows),
        ("A difference of 1 SD of the paired difference, found at alpha = 0.05 / 15", verdicts.power_rows),
        ("Called equivalent", verdicts.equivalence_rows),
        ("Across tasks: files with any false claim (n: adapters)", across_rows),
    )
    all_rows: list[SimulationRow] = []
    for title, make in parts:
        rows = list(make(repetitions))
        print(f"\n### {title}\n\n{table(rows)}", flush=True)
        all_rows += rows
    print(f"\n### Other tests, n = 20: family-wise null wins / 1 SD found\n\n{_methods(repetitions)}")
    print(f"\n### Detectable differences, in SD of the paired difference\n\n{_detectable()}")
    failing = [row for row in all_rows if not row.holds]
    print(f"\n{len(failing)} of {sum(row.required is not None for row in all_rows)} requirements do not hold.")
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr)
    return 1 if failing else 0


def across_rows(repetitions: int) -> Iterator[SimulationRow]:
    """Yield what claims across tasks come to, of a tenth of the files: each is a whole results folder."""
    files = max(1, repetitions // 10)
    yield from tasks.null_rows(files)
    yield from tasks.null_rows(files, "quality")
    yield from tasks.shared_rows(files)
    yield from tasks.power_rows(files)


def _methods(repetitions: int) -> str:
    cells: dict[str, dict[str, str]] = {}
    for null, method_row in verdicts.method_rows(repetitions):
        cells.setdefault(null.what, {})[null.distribution] = f"{100 * null.share:.1f} / {100 * method_row.share:.1f}"
    names = [distribution.name for distribution in ALL]
    lines = ["| test | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    lines += [f"| {what} | " + " | ".join(of[name] for name in names) + " |" for what, of in cells.items()]
    return "\n".join(lines)


def _detectable() -> str:
    columns = {"one comparison (0.05)": 0.05, "family of 15": 0.05 / 15}
    lines = ["| seeds | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    lines += [f"| {n} | " + " | ".join(f"{detectable(n, alpha):.2f}" for alpha in columns.values()) + " |" for n in PLANNED]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
