"""`tuneoff workloads`: every workload with its metrics, or one with its options, metrics and default search space."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from tuneoff.base.output import columns, write, write_json

if TYPE_CHECKING:
    from tuneoff.registry import WorkloadListing

NAME = "workloads"
HELP = "list the workloads: status, objective, metrics, epochs; with names, also options and default search space"
EXAMPLE = "tuneoff workloads sleep"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="*", help="only these workloads, each with all that it declares")
    parser.add_argument("--json", action="store_true", help="write JSON: a list with one object per workload")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.cli.workload_details import declared, details
    from tuneoff.errors import PluginError
    from tuneoff.registry import list_workload, list_workloads

    names = list(dict.fromkeys(arguments.names))
    listings = [list_workload(name) for name in names] if names else list_workloads()
    lines = [_to_json(listing) for listing in listings]
    whole = [(line, listing.workload) for line, listing in zip(lines, listings, strict=True) if listing.workload is not None]
    broken = [listing.text for listing in listings if listing.workload is None] if names else []
    if names:
        for line, workload in whole:
            line.update(declared(workload))
    if arguments.json:
        write_json(lines)
    elif not names:
        write(_table(lines))
    elif whole:
        write("\n\n".join(details(line, workload) for line, workload in whole))
    if broken:  # of those that were asked for: in the list of all of them a broken one is a line
        raise PluginError("; ".join(broken))
    return 0


def _table(lines: list[dict[str, Any]]) -> str:
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
    return "\n".join([columns(("name", "status", "objective", "epochs", "metrics"), rows), *([""] if notes else []), *notes])


def _to_json(listing: WorkloadListing) -> dict[str, Any]:
    from tuneoff.base.packages import install_command, missing_modules

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
        "mode": workload.metrics.get(workload.default_metric) if workload else None,
        "epochs": workload.default_epochs if workload else None,
        "metrics": dict(workload.metrics) if workload else {},
        "training_algorithm": (workload.training_algorithm or None) if workload else None,
    }
