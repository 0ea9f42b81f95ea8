"""`tuneoff status`: what each planned run of a results folder came to."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tuneoff.cli.folders import add_results, newest_folder
from tuneoff.cli.output import counted, filled_columns, write, write_json

if TYPE_CHECKING:
    from tuneoff.matrix.folder import RunEnd
    from tuneoff.matrix.plan import Plan

NAME = "status"
HELP = "show each planned run of a results folder with its status"
EXAMPLE = "tuneoff status"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_results(parser)
    parser.add_argument("--json", action="store_true", help="write JSON: the folder, and one object per planned run")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.cli.matrix import to_json
    from tuneoff.matrix.folder import read_plan, run_ends

    results = arguments.results or newest_folder()
    plan = read_plan(results)
    ends = run_ends(results, plan)
    if arguments.json:
        write_json(to_json(plan, results, ends))
        return 0
    counts = Counter(end.status for end in ends)
    summary = f"{counts['done']} of {counted(len(ends), 'run')} done" + "".join(
        f", {count} {status}" for status, count in counts.items() if status != "done"
    )
    write(f"{_table(plan, ends)}\n\n{summary}; {results.resolve()}")
    return 0


def _table(plan: Plan, ends: Sequence[RunEnd]) -> str:
    from tuneoff.cli.matrix import reason
    from tuneoff.experiment.names import emulated_label, label_texts, strategy_text, variant_text

    labels = label_texts((run.label, run.spec.adapter) for run in plan.runs)
    specs = {run.run_id: run.spec for run in plan.counted}
    rows = []
    for end in ends:
        spec = specs[end.run_id]
        rows.append(
            (
                end.run_id,
                emulated_label(labels[end.label], spec) if end.emulated else labels[end.label],
                strategy_text(spec.experiment),
                variant_text(spec.experiment.variant),
                str(spec.seed),
                end.status,
                ", ".join(end.flags),
                reason(end),
            )
        )
    header = ("run", "adapter", "sampler", "variant", "seed", "status", "flags", "reason")
    return filled_columns(header, rows, optional=("variant", "flags", "reason"))
