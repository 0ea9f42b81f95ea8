"""`tuneoff status`: what each planned run of a results folder came to."""

from __future__ import annotations

import argparse
from collections import Counter

from tuneoff.cli.folders import add_results, newest_folder
from tuneoff.cli.output import columns, write, write_json

NAME = "status"
HELP = "show each planned run of a results folder with its status"
EXAMPLE = "tuneoff status"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_results(parser)
    parser.add_argument("--json", action="store_true", help="write JSON: the folder, and one object per planned run")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.cli.matrix import ends_to_json
    from tuneoff.matrix.folder import read_plan, run_ends

    results = arguments.results or newest_folder()
    plan = read_plan(results)
    ends = run_ends(results, plan)
    if arguments.json:
        write_json({"results": str(results.absolute()), "plan_id": plan.plan_id, "runs": ends_to_json(ends)})
        return 0
    specs = {run.run_id: run.spec for run in plan.counted}
    rows = []
    for end in ends:
        spec = specs[end.run_id]
        variant = " ".join(f"{name}={value}" for name, value in spec.experiment.variant.items())
        rows.append((end.run_id, end.label, str(spec.seed), variant or "-", end.status, end.reason or ""))
    counts = Counter(end.status for end in ends)
    summary = f"{counts['done']} of {len(ends)} runs done" + "".join(
        f", {count} {status}" for status, count in counts.items() if status != "done"
    )
    write(f"{columns(('run', 'adapter', 'seed', 'variant', 'status', 'reason'), rows)}\n\n{summary}; {results.absolute()}")
    return 0
