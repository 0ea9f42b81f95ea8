"""`tuneoff workloads`: every workload with its metrics."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from tuneoff.cli.output import columns, write, write_json

if TYPE_CHECKING:
    from tuneoff.registry import WorkloadListing

NAME = "workloads"
HELP = "list the workloads: status, objective, metrics, epochs"
EXAMPLE = "tuneoff workloads"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="write JSON: a list with one object per workload")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.registry import list_workloads

    lines = [_to_json(listing) for listing in list_workloads()]
    if arguments.json:
        write_json(lines)
        return 0
    rows = [
        (
            line["name"],
            line["status"],
            f"{line['objective']} ({line['mode']})" if line["objective"] else "-",
            str(line["epochs"] or "-"),
            " ".join(line["metrics"]) or "-",
        )
        for line in lines
    ]
    notes = [line["text"] for line in lines if line["text"]]
    write("\n".join([columns(("name", "status", "objective", "epochs", "metrics"), rows), *([""] if notes else []), *notes]))
    return 0


def _to_json(listing: WorkloadListing) -> dict[str, Any]:
    from tuneoff.packages import install_command, missing_modules

    workload = listing.workload
    missing = missing_modules(workload.preload) if workload else []
    text = listing.text
    if missing:
        text = f"workload {listing.plugin.name!r} needs {', '.join(missing)}; run: {install_command(' '.join(missing))}"
    return {
        "name": listing.plugin.name,
        "status": "broken" if workload is None else "missing" if missing else "ready",
        "text": text or None,
        "target": listing.plugin.target,
        "distribution": listing.plugin.distribution or None,
        "distribution_version": listing.plugin.version or None,
        "version": workload.version if workload else None,
        "objective": workload.default_metric if workload else None,
        "mode": workload.metrics[workload.default_metric] if workload else None,
        "epochs": workload.default_epochs if workload else None,
        "metrics": dict(workload.metrics) if workload else {},
        "training_algorithm": (workload.training_algorithm or None) if workload else None,
    }
