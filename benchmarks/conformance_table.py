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


def table(records: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Yield the head and a row per adapter of each record, without verdicts that are nowhere; `records`: one of each call."""
    reports = [report for record in records for report in record["adapters"]]
    verdicts = [verdict for verdict in ORDER if any(report["counts"][verdict] for report in reports)]
    yield ("framework", "runs, seconds", *verdicts, "which failed")
    for report in reports:
        counts = (str(report["counts"][verdict]) for verdict in verdicts)
        failures = ", ".join(f"`{check['id']}`" for check in report["checks"] if check["verdict"] == "failed")
        yield (report["framework"] or report["label"], f"{report['runs']}, {report['seconds']:.0f}", *counts, failures or "–")


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("usage: python -m benchmarks.conformance_table FILE...; each what `tuneoff check NAME --json` wrote")
    records = (json.loads(Path(name).read_text()) for name in sys.argv[1:])
    head, *rows = table(records)
    print("\n".join(markdown_table(head, rows)))


if __name__ == "__main__":
    main()
