"""Make the table of docs/conformance.md: a row per adapter and release, from what `tuneoff check NAME --json` wrote.

tuneoff check optuna --json > optuna-5.0.0.json
python -m benchmarks.conformance_table optuna-*.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tuneoff.base.findings import ORDER
from tuneoff.base.output import markdown_table

HEAD = ("adapter", "framework", "runs, seconds", *ORDER, "which failed")


def rows(records: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Yield a row per adapter of each record; `records`: what the command wrote, one each call."""
    for report in (report for record in records for report in record["adapters"]):
        counts = (str(report["counts"][verdict]) for verdict in ORDER)
        failures = ", ".join(f"`{check['id']}`" for check in report["checks"] if check["verdict"] == "failed")
        yield (report["label"], report["framework"], f"{report['runs']}, {report['seconds']:.0f}", *counts, failures or "–")


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("usage: python -m benchmarks.conformance_table FILE...; each what `tuneoff check NAME --json` wrote")
    records = (json.loads(Path(name).read_text()) for name in sys.argv[1:])
    print("\n".join(markdown_table(HEAD, list(rows(records)))))


if __name__ == "__main__":
    main()
